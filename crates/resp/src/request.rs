//! Parsed requests, as ranges of the bytes they were parsed from.
//!
//! One [`Requests`] holds the requests of one pipeline and is reused for the next: no allocation per request.

/// The range of one argument, from the start of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Argument {
    /// Both ends lie within [`crate::Limits::REQUEST_BYTES_MAX`], which fits.
    pub(crate) fn new(start: usize, end: usize) -> Argument {
        Argument { start: start as u32, end: end as u32 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where the request starts in its source.
    base: usize,
    /// One past its last argument.
    arguments_end: usize,
    /// Its source is the decoded text of inline commands rather than the input.
    inline: bool,
}

/// The complete requests found in an input, in order.
#[derive(Debug, Default)]
pub struct Requests {
    frames: Vec<Frame>,
    arguments: Vec<Argument>,
    /// Arguments of inline commands, their quoting undone.
    decoded: Vec<u8>,
}

impl Requests {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forgets them; keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.arguments.clear();
        self.decoded.clear();
    }

    /// Memory held, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.arguments.capacity() * size_of::<Argument>()
            + self.decoded.capacity()
    }

    /// Request number `index`; `input` is what was given to [`crate::Parser::parse`].
    ///
    /// # Panics
    /// If there is no such request, or if `input` is shorter than the input it was parsed from.
    pub fn get<'a>(&'a self, index: usize, input: &'a [u8]) -> Request<'a> {
        let frame = self.frames[index];
        let start = index.checked_sub(1).map_or(0, |previous| self.frames[previous].arguments_end);
        let source = if frame.inline { &self.decoded } else { input };
        Request { bytes: &source[frame.base..], arguments: &self.arguments[start..frame.arguments_end] }
    }

    /// Adds a copy of `request`, to be had with [`Requests::get`] whatever input is given there.
    pub fn push_copy(&mut self, request: &Request<'_>) {
        let words: Vec<&[u8]> = (0..request.len()).map(|index| request.argument(index)).collect();
        self.push_words(&words);
    }

    pub(crate) fn push(&mut self, base: usize, arguments: &[Argument]) {
        self.arguments.extend_from_slice(arguments);
        self.frames.push(Frame { base, arguments_end: self.arguments.len(), inline: false });
    }

    /// Adds the request that these words make, the command's name first; none if there are no words.
    pub fn push_words(&mut self, words: &[impl AsRef<[u8]>]) {
        if words.is_empty() {
            return;
        }
        let base = self.decoded.len();
        for word in words {
            let start = self.decoded.len() - base;
            self.decoded.extend_from_slice(word.as_ref());
            self.arguments.push(Argument::new(start, start + word.as_ref().len()));
        }
        self.frames.push(Frame { base, arguments_end: self.arguments.len(), inline: true });
    }
}

/// One request: a command's name and its arguments, at least the name.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    bytes: &'a [u8],
    arguments: &'a [Argument],
}

impl<'a> Request<'a> {
    /// How many arguments it has, the command's name among them.
    #[allow(clippy::len_without_is_empty, reason = "a request is never empty")]
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// From its start to the end of its last argument: as long as all arguments together, at least.
    pub fn span_bytes(&self) -> usize {
        self.arguments.last().map_or(0, |last| last.end as usize)
    }

    /// The command's name as it was sent.
    pub fn name(&self) -> &'a [u8] {
        self.argument(0)
    }

    /// Argument number `index`; the name is number 0.
    ///
    /// # Panics
    /// If there is no such argument.
    pub fn argument(&self, index: usize) -> &'a [u8] {
        let Argument { start, end } = self.arguments[index];
        &self.bytes[start as usize..end as usize]
    }

    /// The arguments after the name.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let request = *self;
        (1..self.len()).map(move |index| request.argument(index))
    }
}
