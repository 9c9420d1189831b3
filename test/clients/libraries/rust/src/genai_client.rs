use crate::{Gateway, MODEL, PIXEL, case};
use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ChatStreamEvent, ContentPart, JsonSpec, Tool, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::json;

type Outcome = Result<String, genai::Error>;

fn client(gateway: &Gateway, kind: AdapterKind, key: &str) -> Client {
    let (url, key) = (format!("{}/v1/", gateway.url), key.to_string());
    let resolver = ServiceTargetResolver::from_resolver_fn(
        move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
            Ok(ServiceTarget {
                endpoint: Endpoint::from_owned(url.clone()),
                auth: AuthData::from_single(key.clone()),
                model: ModelIden::new(kind, target.model.model_name),
            })
        },
    );
    Client::builder().with_service_target_resolver(resolver).build().unwrap()
}

async fn ask(client: &Client, message: ChatMessage, options: Option<ChatOptions>) -> Outcome {
    let reply = client.exec_chat(MODEL, ChatRequest::new(vec![message]), options.as_ref()).await?;
    let total = reply.usage.total_tokens.unwrap_or(0);
    let thought = reply.reasoning_content.clone().unwrap_or_default();
    Ok(format!("{} {total} ({thought})", reply.first_text().unwrap_or("")))
}

async fn stream(client: &Client, prompt: &str, chunks_max: usize) -> Outcome {
    let options = ChatOptions::default().with_capture_usage(true);
    let request = ChatRequest::new(vec![ChatMessage::user(prompt)]);
    let mut events = client.exec_chat_stream(MODEL, request, Some(&options)).await?.stream;
    let (mut text, mut thought, mut total, mut chunks) = (String::new(), String::new(), 0, 0);
    while let Some(event) = events.next().await {
        match event? {
            ChatStreamEvent::Chunk(chunk) => {
                text += &chunk.content;
                chunks += 1;
            }
            ChatStreamEvent::ReasoningChunk(chunk) => thought += &chunk.content,
            ChatStreamEvent::End(end) => total = end.captured_usage.and_then(|usage| usage.total_tokens).unwrap_or(0),
            _ => {}
        }
        if chunks > 0 && chunks == chunks_max {
            return Ok("left".to_string());
        }
    }
    Ok(format!("{text} {total} ({thought})"))
}

async fn tools(client: &Client, prompt: &str) -> Outcome {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tool = Tool::new("get_weather").with_description("The weather of a city").with_schema(schema);
    let mut request = ChatRequest::new(vec![ChatMessage::user(prompt)]).with_tools(vec![tool]);
    let mut rounds = 1;
    loop {
        let reply = client.exec_chat(MODEL, request.clone(), None).await?;
        let text = reply.first_text().unwrap_or("").to_string();
        let calls = reply.into_tool_calls();
        if calls.is_empty() {
            return Ok(format!("{text} in {rounds}"));
        }
        rounds += 1;
        let results: Vec<ToolResponse> = calls.iter().map(|call| ToolResponse::new(call.call_id.clone(), "sunny")).collect();
        request = request.append_message(calls);
        for result in results {
            request = request.append_message(result);
        }
    }
}

pub async fn run(gateway: &Gateway) {
    for (name, kind) in
        [("chat", AdapterKind::OpenAI), ("responses", AdapterKind::OpenAIResp), ("messages", AdapterKind::Anthropic)]
    {
        let rich = client(gateway, kind, &gateway.key);
        let of = |what: &str| format!("{name} {what}");
        let script = |script: &str| ChatMessage::user(format!("[[{script}#genai-{name}]]"));
        let book = json!({ "type": "object", "properties": { "title": { "type": "string" }, "year": { "type": "integer" } }, "required": ["title", "year"], "additionalProperties": false });
        let object = ChatOptions::default()
            .with_response_format(ChatResponseFormat::JsonSpec(JsonSpec::new("book", book)));
        let picture = ChatMessage::user(vec![
            ContentPart::from_text(format!("[[text#genai-seen-{name}]]")),
            ContentPart::from_binary_base64("image/png", PIXEL, None),
        ]);
        let dear = ChatOptions::default().with_max_tokens(60_000);
        case(&of("text"), ask(&rich, script("reasoning-text"), None)).await;
        case(&of("stream"), stream(&rich, &format!("[[reasoning-text#genai-{name}]]"), 0)).await;
        case(&of("tools"), tools(&rich, &format!("[[parallel-tools#genai-{name}]]"))).await;
        case(&of("object"), ask(&rich, script("json"), Some(object))).await;
        case(&of("image"), ask(&rich, picture, None)).await;
        case(&of("key"), ask(&client(gateway, kind, "wrong"), script("text"), None)).await;
        case(&of("balance"), ask(&client(gateway, kind, &gateway.poor), script("text"), Some(dear))).await;
        case(&of("context"), ask(&rich, script("prompt-too-long"), None)).await;
        case(&of("failed"), stream(&rich, &format!("[[error-mid-stream#genai-{name}]]"), 0)).await;
        case(&of("left"), stream(&rich, &format!("[[endless#genai-left-{name}]]"), 5)).await;
        case(&of("flood"), ask(&rich, script("status-429"), None)).await;
    }
}
