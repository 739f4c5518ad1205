//! Memory that grows until a text fits.

use seqtext::SeqBuf;

/// A text and its memory, which is reused for the next text.
#[derive(Clone, Debug, Default)]
pub struct Text {
    memory: Vec<u8>,
    len: usize,
}

impl Text {
    const SMALLEST: usize = 4096;

    /// Renders a text, with twice the memory again until it fits, as `seq_read()` does.
    ///
    /// # Errors
    /// Those of `render`; then the text is empty.
    pub fn render<E>(
        &mut self,
        mut render: impl FnMut(&mut SeqBuf<'_>) -> Result<(), E>,
    ) -> Result<&[u8], E> {
        self.len = 0;
        loop {
            let mut out = SeqBuf::new(&mut self.memory);
            render(&mut out)?;
            if !out.has_overflowed() {
                self.len = out.count();
                return Ok(self.as_bytes());
            }
            let size = (2 * self.memory.len()).max(Self::SMALLEST);
            self.memory.resize(size, 0);
        }
    }

    /// The text that was rendered last.
    pub fn as_bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_until_the_text_fits() {
        let mut text = Text::default();
        let mut tries = 0;
        let mut long = |out: &mut SeqBuf<'_>| {
            tries += 1;
            for _ in 0..5000 {
                out.puts("ab");
            }
            Ok::<_, ()>(())
        };
        assert_eq!(text.render(&mut long).map(<[u8]>::len), Ok(10_000));
        assert_eq!(text.render(&mut long).map(<[u8]>::len), Ok(10_000));
        assert_eq!(tries, 5);
        assert_eq!(text.render(|_| Err("no")), Err("no"));
        assert_eq!(text.as_bytes(), b"");
    }
}
