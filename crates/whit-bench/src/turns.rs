//! In which order the peers of a round have their turn.

/// Every round begins at another one, and every other round goes backwards, so that nobody always
/// follows the same other.
pub(crate) fn order(round: usize, peers: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..peers).map(|turn| (round + turn) % peers).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}
