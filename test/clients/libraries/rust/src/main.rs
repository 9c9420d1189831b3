//! The Rust libraries, each through what people do with it. Arguments: the library, the gateway's address. The keys are in KEY and
//! POOR. Each line is a case and what came of it; see ../../libraries.test.ts.
mod genai_client;
mod openai_client;
mod rig_client;

use std::fmt::Display;
use std::future::Future;

pub const MODEL: &str = "core-3";
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub struct Gateway {
    pub url: String,
    pub key: String,
    pub poor: String,
}

/// Prints what a case gave, or its error in the library's own words.
pub async fn case<T: Display, E: Display>(name: &str, run: impl Future<Output = Result<T, E>>) {
    match run.await {
        Ok(value) => println!("{name}: {value}"),
        Err(error) => println!("{name}: ERROR {}", error.to_string().replace('\n', " ")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let gateway = Gateway { url: words[2].clone(), key: of("KEY"), poor: of("POOR") };
    match words[1].as_str() {
        "async-openai" => openai_client::run(&gateway).await,
        "genai" => genai_client::run(&gateway).await,
        _ => rig_client::run(&gateway).await,
    }
}
