//! A client of HTTP/1.1 that sends exactly what a test wants, right or wrong.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use fastproc_testbed::GUARD;

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is UTF-8")
    }
}

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    #[track_caller]
    pub fn connect(address: &str) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    pub fn try_connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GUARD))?;
        stream.set_write_timeout(Some(GUARD))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends as many requests as the other side accepts at once.
    pub fn flood(&mut self, request: &[u8], times: usize) {
        let stream = self.stream.get_mut();
        stream.set_nonblocking(true).expect("it is a socket");
        for _ in 0..times {
            if stream.write_all(request).is_err() {
                break;
            }
        }
        stream.set_nonblocking(false).expect("it is a socket");
    }

    /// Sends a request on this connection, and leaves it open.
    #[track_caller]
    pub fn get(&mut self, path: &str, headers: &[&str]) -> Response {
        self.try_get(path, headers)
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn try_get(&mut self, path: &str, headers: &[&str]) -> io::Result<Response> {
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n");
        for header in headers {
            request += header;
            request += "\r\n";
        }
        request += "\r\n";
        self.send(request.as_bytes())?;
        self.response()
    }

    /// Reads one answer. If the connection ends instead, that is an error.
    pub fn response(&mut self) -> io::Result<Response> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let length = response.header("content-length").unwrap_or("0").parse();
        response.body = vec![0; length.map_err(|_| io::ErrorKind::InvalidData)?];
        self.stream.read_exact(&mut response.body)?;
        Ok(response)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads until the other side closes the connection.
    pub fn wait_for_end(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection is not closed: {error}"),
        }
    }
}
