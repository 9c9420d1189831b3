use crate::{Gateway, MODEL, PIXEL, case};
use futures::StreamExt;
use rig::completion::{CompletionRequest, Message};
use rig::message::{ImageMediaType, UserContent};
use rig::operation::Completion;
use rig::prelude::*;
use rig::providers::anthropic::AnthropicConfig;
use rig::providers::openai::{OpenAI, OpenAIConfig};
use rig::streaming::{Item, StreamEvent};
use rig::tool::ToolExecutionError;
use serde_json::json;

type Outcome = Result<String, PromptError>;
type AnyModel = DynModel<Completion>;

/// The weather of a city
#[rig::rig_tool]
fn get_weather(
    /// The city
    city: String,
) -> Result<String, ToolExecutionError> {
    Ok(format!("sunny in {city}"))
}

fn openai(gateway: &Gateway, key: &str) -> OpenAI {
    OpenAIConfig::new(key).with_base_url(format!("{}/v1", gateway.url)).client()
}

fn model(gateway: &Gateway, dialect: &str, key: &str) -> AnyModel {
    match dialect {
        "chat" => openai(gateway, key).chat(MODEL).into(),
        "responses" => openai(gateway, key).responses(MODEL).into(),
        _ => AnthropicConfig::new(key).with_base_url(&gateway.url).client().completion(MODEL).into(),
    }
}

async fn ask(agent: Agent, prompt: impl Into<Message>) -> Outcome {
    let reply = agent.prompt(prompt).await?;
    Ok(format!("{} {} in {}", reply.output(), reply.usage().total_tokens.unwrap_or(0), reply.requests()))
}

async fn stream(agent: Agent, prompt: String, texts_max: usize) -> Outcome {
    let mut items = agent.prompt(prompt).stream();
    let (mut text, mut thought, mut texts) = (String::new(), String::new(), 0);
    while let Some(item) = items.next().await {
        if let MultiTurnStreamItem::StreamAssistantItem(item) = item? {
            match item {
                Item::Event(StreamEvent::Text { text: more, .. }) => {
                    text += &more;
                    texts += 1;
                }
                Item::Event(StreamEvent::Reasoning { text: more, .. }) => thought += &more,
                _ => {}
            }
        }
        if texts > 0 && texts == texts_max {
            return Ok("left".to_string());
        }
    }
    Ok(format!("{text} ({thought})"))
}

/// Two turns of a WebSocket, of which the second continues the first.
async fn socket(gateway: &Gateway) -> Result<String, ProviderError> {
    let mut session = openai(gateway, &gateway.key).responses(MODEL).responses_websocket().connect().await?;
    let first = session.completion(CompletionRequest::new("[[text#rig-socket]]")).await?;
    let second = session.completion(CompletionRequest::new("and?")).await?;
    session.close().await?;
    Ok(format!("{} {}", first.text(), second.text()))
}

pub async fn run(gateway: &Gateway) {
    for dialect in ["chat", "responses", "messages"] {
        let of = |what: &str| format!("{dialect} {what}");
        let script = |script: &str| format!("[[{script}#rig-{dialect}]]");
        let agent = |key: &str| AgentBuilder::new(model(gateway, dialect, key)).max_tokens(2_000);
        let rich = || agent(&gateway.key);
        let book = json!({ "title": "book", "type": "object", "properties": { "title": { "type": "string" }, "year": { "type": "integer" } } });
        let picture = Message::User {
            content: vec![
                UserContent::text(format!("[[text#rig-seen-{dialect}]]")),
                UserContent::image_base64(PIXEL, Some(ImageMediaType::PNG), None),
            ],
        };
        case(&of("text"), ask(rich().build(), script("reasoning-text"))).await;
        case(&of("stream"), stream(rich().build(), script("reasoning-text"), 0)).await;
        case(&of("tools"), ask(rich().default_max_turns(4).tool(GetWeather).build(), script("parallel-tools"))).await;
        case(&of("object"), ask(rich().output_schema_raw(book.try_into().unwrap()).build(), script("json"))).await;
        case(&of("image"), ask(rich().build(), picture)).await;
        case(&of("key"), ask(agent("wrong").build(), script("text"))).await;
        case(&of("balance"), ask(agent(&gateway.poor).max_tokens(60_000).build(), script("text"))).await;
        case(&of("context"), ask(rich().build(), script("prompt-too-long"))).await;
        case(&of("failed"), stream(rich().build(), script("error-mid-stream"), 0)).await;
        case(&of("left"), stream(rich().build(), script("endless"), 5)).await;
        case(&of("flood"), ask(rich().build(), script("status-429"))).await;
    }
    case("socket", socket(gateway)).await;
    let listed = async { openai(gateway, &gateway.key).list_models().await.map(|list| list.data.iter().any(|model| model.id == MODEL)) };
    case("models", listed).await;
}
