use crate::{Gateway, MODEL, PIXEL, case};
use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::{CreateResponse, ResponseStreamEvent};
use async_openai::{Client, config::OpenAIConfig, error::OpenAIError};
use futures::StreamExt;
use serde_json::{Value, json};

const SCRIPTS: [&str; 9] = [
    "reasoning-text",
    "two-bash-calls",
    "parallel-tools",
    "web-search",
    "length",
    "stop-sequence",
    "refused",
    "spoiled-arguments",
    "usage-missing",
];

type Outcome = Result<String, OpenAIError>;

fn client(gateway: &Gateway, key: &str) -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(format!("{}/v1", gateway.url)).with_api_key(key))
}

fn of<T: serde::de::DeserializeOwned>(fields: Value, input: Value, name: &str) -> T {
    let mut body = json!({ "model": MODEL, name: input });
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    serde_json::from_value(body).unwrap()
}

async fn chat(client: &Client<OpenAIConfig>, content: Value, fields: Value) -> Outcome {
    let request: CreateChatCompletionRequest = of(fields, json!([{ "role": "user", "content": content }]), "messages");
    let reply = client.chat().create(request).await?;
    let usage = reply.usage.map_or(0, |usage| usage.total_tokens);
    Ok(format!("{} {usage}", reply.choices[0].message.content.clone().unwrap_or_default()))
}

async fn chat_stream(client: &Client<OpenAIConfig>, content: &str, events_max: usize) -> Outcome {
    let fields = json!({ "stream_options": { "include_usage": true } });
    let request: CreateChatCompletionRequest = of(fields, json!([{ "role": "user", "content": content }]), "messages");
    let mut stream = client.chat().create_stream(request).await?;
    let (mut text, mut total, mut events) = (String::new(), 0, 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        events += 1;
        total = chunk.usage.map_or(total, |usage| usage.total_tokens);
        for choice in chunk.choices {
            text += choice.delta.content.as_deref().unwrap_or("");
        }
        if events == events_max {
            return Ok("left".to_string());
        }
    }
    Ok(format!("{text} {total}"))
}

async fn chat_tools(client: &Client<OpenAIConfig>, content: &str) -> Outcome {
    let function = json!({ "name": "get_weather", "parameters": { "type": "object", "properties": { "city": { "type": "string" } } } });
    let tools = json!({ "tools": [{ "type": "function", "function": function }] });
    let mut messages = vec![json!({ "role": "user", "content": content })];
    loop {
        let request: CreateChatCompletionRequest = of(tools.clone(), json!(messages), "messages");
        let message = client.chat().create(request).await?.choices.remove(0).message;
        let Some(calls) = message.tool_calls.filter(|calls| !calls.is_empty()) else {
            return Ok(format!("{} in {}", message.content.unwrap_or_default(), messages.len()));
        };
        messages.push(json!({ "role": "assistant", "tool_calls": calls }));
        for call in json!(calls).as_array().unwrap() {
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "sunny" }));
        }
    }
}

async fn response(client: &Client<OpenAIConfig>, input: Value, fields: Value) -> Outcome {
    let request: CreateResponse = of(fields, input, "input");
    let reply = client.responses().create(request).await?;
    let usage = reply.usage.as_ref().map_or(0, |usage| usage.total_tokens);
    let kinds: Vec<String> =
        reply.output.iter().map(|item| json!(item)["type"].as_str().unwrap_or("").to_string()).collect();
    Ok(format!("{} {usage} {}", reply.output_text().unwrap_or_default(), kinds.join("+")))
}

async fn response_stream(client: &Client<OpenAIConfig>, input: &str) -> Outcome {
    let request: CreateResponse = of(json!({}), json!(input), "input");
    let mut stream = client.responses().create_stream(request).await?;
    let (mut text, mut thought) = (String::new(), String::new());
    while let Some(event) = stream.next().await {
        match event? {
            ResponseStreamEvent::ResponseOutputTextDelta(event) => text += &event.delta,
            ResponseStreamEvent::ResponseReasoningTextDelta(event) => thought += &event.delta,
            ResponseStreamEvent::ResponseReasoningSummaryTextDelta(event) => thought += &event.delta,
            ResponseStreamEvent::ResponseFailed(event) => return Ok(format!("failed {:?}", event.response.error)),
            _ => {}
        }
    }
    Ok(format!("{text} ({thought})"))
}

async fn response_tools(client: &Client<OpenAIConfig>, input: &str) -> Outcome {
    let tools = json!([{ "type": "function", "name": "get_weather", "parameters": { "type": "object" }, "strict": false }]);
    let request: CreateResponse = of(json!({ "tools": tools }), json!(input), "input");
    let first = client.responses().create(request).await?;
    let calls = json!(first.output);
    let call = calls.as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let result = json!([{ "type": "function_call_output", "call_id": call["call_id"], "output": "sunny" }]);
    response(client, result, json!({ "previous_response_id": first.id, "tools": tools })).await
}

/// Every event of scripts in both dialects, parsed by the library's own types: what it could not read.
async fn unread(client: &Client<OpenAIConfig>) -> Outcome {
    let function = json!({ "name": "get_weather", "parameters": { "type": "object" }, "strict": false });
    let mut wrong = Vec::new();
    for script in SCRIPTS {
        let prompt = format!("[[{script}#async-openai-unread]]");
        let tools = json!({ "tools": [{ "type": "function", "function": function }] });
        let request: CreateChatCompletionRequest = of(tools, json!([{ "role": "user", "content": prompt }]), "messages");
        let mut chunks = client.chat().create_stream(request).await?;
        while let Some(chunk) = chunks.next().await {
            wrong.extend(chunk.err().map(|error| format!("chat {script}: {error}")));
        }
        let mut tools = vec![function.clone(), json!({ "type": "web_search" })];
        tools[0]["type"] = json!("function");
        let fields = json!({ "tools": tools, "include": ["reasoning.encrypted_content"], "top_logprobs": 2 });
        let request: CreateResponse = of(fields.clone(), json!(prompt), "input");
        let mut events = client.responses().create_stream(request).await?;
        while let Some(event) = events.next().await {
            wrong.extend(event.err().map(|error| format!("responses {script}: {error}")));
        }
        response(client, json!(prompt), fields).await?;
    }
    Ok(wrong.join("; "))
}

pub async fn run(gateway: &Gateway) {
    let rich = client(gateway, &gateway.key);
    let schema = json!({ "name": "book", "strict": true, "schema": { "type": "object", "properties": { "title": { "type": "string" } } } });
    let picture = format!("data:image/png;base64,{PIXEL}");
    let long: Vec<Value> = (0..201)
        .map(|turn| json!({ "role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": "[[text#async-openai-long]] on" }))
        .collect();
    case("text", chat(&rich, json!("[[text#async-openai]]"), json!({}))).await;
    case("stream", chat_stream(&rich, "[[reasoning-text#async-openai]]", 0)).await;
    case("tools", chat_tools(&rich, "[[parallel-tools#async-openai]]")).await;
    let format = json!({ "response_format": { "type": "json_schema", "json_schema": schema } });
    case("object", chat(&rich, json!("[[json#async-openai]]"), format)).await;
    let parts = json!([{ "type": "text", "text": "[[text#async-openai-seen]]" }, { "type": "image_url", "image_url": { "url": picture } }]);
    case("image", chat(&rich, parts, json!({}))).await;
    case("response", response(&rich, json!("[[reasoning-text#async-openai]]"), json!({}))).await;
    case("response stream", response_stream(&rich, "[[reasoning-text#async-openai]]")).await;
    case("response tools", response_tools(&rich, "[[one-tool#async-openai]]")).await;
    case("response long", response(&rich, json!(long), json!({ "store": false }))).await;
    case("models", async { rich.models().list().await.map(|list| list.data.iter().any(|model| model.id == MODEL)) }).await;
    case("key", chat(&client(gateway, "wrong"), json!("x"), json!({}))).await;
    case("model", chat(&rich, json!("x"), json!({ "model": "nobody" }))).await;
    case("balance", chat(&client(gateway, &gateway.poor), json!("x"), json!({ "max_completion_tokens": 60_000 }))).await;
    case("context", chat(&rich, json!("[[prompt-too-long#async-openai]]"), json!({}))).await;
    case("failed chat", chat_stream(&rich, "[[error-mid-stream#async-openai]]", 0)).await;
    case("failed response", response_stream(&rich, "[[error-mid-stream#async-openai]]")).await;
    case("left", chat_stream(&rich, "[[endless#async-openai-left]]", 5)).await;
    case("unread", unread(&rich)).await;
    case("flood", chat(&rich, json!("[[status-429#async-openai]]"), json!({}))).await;
}
