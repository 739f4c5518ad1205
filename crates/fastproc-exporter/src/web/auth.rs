//! Basic authentication, with passwords hashed by bcrypt.

use std::{collections::HashMap, sync::Mutex};

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::header::HeaderValue;
use ring::{hmac, rand::SystemRandom};
use tokio::sync::Semaphore;

/// Right credentials that are remembered: bcrypt takes a tenth of a second on purpose.
const REMEMBERED: usize = 64;

/// A hash that nobody has a password for: to take as long for a user who does not exist.
const NOBODY: &str = "$2b$10$abcdefghijklmnopqrstuuMiGR8dMBTcoKWmRvvF1nhcyPUyi8WOi";

/// Who may ask.
pub(super) struct Gate {
    users: HashMap<String, String>,
    key: Option<hmac::Key>,
    /// Digests of credentials that were right.
    right: Mutex<Vec<[u8; 32]>>,
    /// One at a time: whoever tries many passwords gets no more than one CPU, and few of its time.
    one: Semaphore,
}

impl Gate {
    pub(super) fn new(users: HashMap<String, String>) -> Self {
        Self {
            users,
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok(),
            right: Mutex::new(Vec::new()),
            one: Semaphore::new(1),
        }
    }

    /// Whether this header lets its sender in.
    pub(super) async fn admits(&self, authorization: Option<&HeaderValue>) -> bool {
        if self.users.is_empty() {
            return true;
        }
        let Some(credentials) = authorization.and_then(decode) else {
            return false;
        };
        let digest = self.key.as_ref().and_then(|key| {
            let tag = hmac::sign(key, &credentials);
            tag.as_ref().try_into().ok()
        });
        if let Some(digest) = digest
            && self.lock().contains(&digest)
        {
            return true;
        }
        let Some(colon) = credentials.iter().position(|&byte| byte == b':') else {
            return false;
        };
        let user = std::str::from_utf8(&credentials[..colon]).unwrap_or_default();
        let known = self.users.get(user).cloned();
        let password = credentials[colon + 1..].to_vec();
        let Ok(_one) = self.one.acquire().await else {
            return false;
        };
        let checked = tokio::task::spawn_blocking(move || {
            let hash = known.as_deref().unwrap_or(NOBODY);
            bcrypt::verify(password, hash).unwrap_or(false) && known.is_some()
        });
        let right = checked.await.unwrap_or(false);
        if let Some(digest) = digest.filter(|_| right) {
            let mut remembered = self.lock();
            if remembered.len() == REMEMBERED {
                remembered.remove(0);
            }
            remembered.push(digest);
        }
        right
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<[u8; 32]>> {
        self.right
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn decode(header: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = header.as_bytes().split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    BASE64_STANDARD.decode(rest.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(credentials: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(credentials))).unwrap()
    }

    #[tokio::test]
    async fn only_the_right_password_opens() {
        let users = [("a".to_owned(), bcrypt::hash("p:w", 4).unwrap())].into();
        let gate = Gate::new(users);
        assert!(!gate.admits(None).await);
        assert!(!gate.admits(Some(&header("a:wrong"))).await);
        assert!(!gate.admits(Some(&header("b:p:w"))).await);
        assert!(!gate.admits(Some(&header("a"))).await);
        assert!(
            !gate
                .admits(Some(&HeaderValue::from_static("Bearer x")))
                .await
        );
        assert!(gate.admits(Some(&header("a:p:w"))).await);
        // Once more, remembered; and still nobody else.
        assert_eq!(gate.lock().len(), 1);
        assert!(gate.admits(Some(&header("a:p:w"))).await);
        assert!(!gate.admits(Some(&header("a:p:w "))).await);
    }

    #[tokio::test]
    async fn without_users_everybody_may_ask() {
        assert!(Gate::new(HashMap::new()).admits(None).await);
    }

    #[test]
    fn nobodys_hash_is_one() {
        assert!(NOBODY.parse::<bcrypt::HashParts>().is_ok());
        assert!(!bcrypt::verify("", NOBODY).unwrap());
    }
}
