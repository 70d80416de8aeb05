//! Addresses of servers in messages.

/// An address without the name and the password of a user.
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_show_passwords() {
        assert_eq!(shown_url("http://me:se@cret@host:80/x@y"), "http://host:80/x@y");
        assert_eq!(shown_url("https://host"), "https://host");
    }
}
