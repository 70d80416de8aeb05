//! The output of `script -F comm,tid,event,ip,sym`: a head line per sample, its frames below, leaf
//! first, and an empty line.

/// One frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Address, in hexadecimal.
    pub address: String,
    /// Function; `[unknown]` where there is no symbol.
    pub symbol: String,
    /// True where it was inlined into the next one.
    pub inlined: bool,
}

/// One sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The head line.
    pub head: String,
    /// The call chain, leaf first.
    pub frames: Vec<Frame>,
}

impl Sample {
    /// Whether a frame of the chain bears this name.
    pub fn passes(&self, symbol: &str) -> bool {
        self.frames.iter().any(|frame| frame.symbol == symbol)
    }

    /// Number of frames that were not inlined.
    pub fn physical_frames(&self) -> usize {
        self.frames.iter().filter(|frame| !frame.inlined).count()
    }

    /// Name of the outermost frame.
    pub fn root(&self) -> &str {
        self.frames.last().map_or("", |frame| &frame.symbol)
    }

    /// Name of the innermost frame that was not inlined.
    pub fn physical_leaf(&self) -> &str {
        self.frames.iter().find(|frame| !frame.inlined).map_or("", |frame| &frame.symbol)
    }
}

/// All samples, in order.
pub fn parse(text: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut current: Option<Sample> = None;
    for line in text.lines() {
        if line.trim().is_empty() {
            samples.extend(current.take());
        } else if let Some(sample) = &mut current {
            sample.frames.push(frame(line));
        } else {
            current = Some(Sample { head: line.trim().to_owned(), frames: Vec::new() });
        }
    }
    samples.extend(current);
    samples
}

fn frame(line: &str) -> Frame {
    let (address, symbol) = line.trim().split_once(' ').unwrap_or((line.trim(), "[unknown]"));
    let physical = symbol.strip_suffix("(inlined)");
    Frame {
        address: address.to_owned(),
        symbol: physical.unwrap_or(symbol).trim().to_owned(),
        inlined: physical.is_some(),
    }
}

#[test]
fn reads_samples() {
    let text = "deep 12 \n\t     1b4f scramble (inlined)\n\t     1b4f hash_block\n\t 16d0 _start\n\n\
                deep 13 \n\t  88 [unknown]\n\n";
    let samples = parse(text);
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0].head, "deep 12");
    assert_eq!((samples[0].physical_frames(), samples[0].root()), (2, "_start"));
    assert!(samples[0].passes("scramble") && !samples[0].passes("main"));
    assert_eq!(samples[0].physical_leaf(), "hash_block");
    assert_eq!(samples[1].frames[0].symbol, "[unknown]");
}
