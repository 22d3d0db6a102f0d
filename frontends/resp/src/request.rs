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
    /// Both ends are within [`crate::Limits::REQUEST_BYTES_MAX`], so they fit.
    pub(crate) fn new(start: usize, end: usize) -> Argument {
        Argument { start: start as u32, end: end as u32 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The start of the request in its source.
    base: usize,
    /// One past its last argument.
    arguments_end: usize,
    /// Its source is the decoded text of inline commands instead of the input.
    inline: bool,
}

/// The complete requests of an input, in order.
#[derive(Debug, Default)]
pub struct Requests {
    frames: Vec<Frame>,
    arguments: Vec<Argument>,
    /// Decoded arguments of inline commands.
    decoded: Vec<u8>,
}

impl Requests {
    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Removes all requests; keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.arguments.clear();
        self.decoded.clear();
    }

    /// Returns the allocated memory in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.arguments.capacity() * size_of::<Argument>()
            + self.decoded.capacity()
    }

    /// Returns request number `index`; `input` is the input of [`crate::Parser::parse`].
    ///
    /// # Panics
    /// If there is no such request, or if `input` is shorter than the input it was parsed from.
    pub fn get<'a>(&'a self, index: usize, input: &'a [u8]) -> Request<'a> {
        let frame = self.frames[index];
        let start = index.checked_sub(1).map_or(0, |previous| self.frames[previous].arguments_end);
        let source = if frame.inline { &self.decoded } else { input };
        Request { bytes: &source[frame.base..], arguments: &self.arguments[start..frame.arguments_end] }
    }

    /// Adds a copy of `request`; [`Requests::get`] ignores the input for it.
    pub fn push_copy(&mut self, request: &Request<'_>) {
        let words: Vec<&[u8]> = (0..request.len()).map(|index| request.argument(index)).collect();
        self.push_words(&words);
    }

    pub(crate) fn push(&mut self, base: usize, arguments: &[Argument]) {
        self.arguments.extend_from_slice(arguments);
        self.frames.push(Frame { base, arguments_end: self.arguments.len(), inline: false });
    }

    /// Adds the request of these words, the command's name first; none if there are no words.
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
    /// Returns the number of arguments, including the command's name.
    #[allow(clippy::len_without_is_empty, reason = "a request is never empty")]
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Returns the length from its start to the end of its last argument: at least the length of all arguments
    /// together.
    pub fn span_bytes(&self) -> usize {
        self.arguments.last().map_or(0, |last| last.end as usize)
    }

    /// Returns the command's name as sent.
    pub fn name(&self) -> &'a [u8] {
        self.argument(0)
    }

    /// Returns argument number `index`; the name is number 0.
    ///
    /// # Panics
    /// If there is no such argument.
    pub fn argument(&self, index: usize) -> &'a [u8] {
        let Argument { start, end } = self.arguments[index];
        &self.bytes[start as usize..end as usize]
    }

    /// Returns the arguments after the name.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let request = *self;
        (1..self.len()).map(move |index| request.argument(index))
    }
}
