// The official JavaScript client's responses over a WebSocket. Arguments: base address. The key is in KEY; it runs with Node,
// because Bun has a `ws` of its own. See ../response-sockets.test.ts.
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.env.KEY });
const ws = new ResponsesWS(client);
const events = ws.stream();
const said = {};

/** The next event that fits, or the error: leaving a loop over the iterator would end it. */
async function next(fits) {
  for (;;) {
    const { value: event, done } = await events.next();
    if (done) throw new Error("closed before the end");
    if (event.type === "error") return event.error;
    if (event.type === "message" && fits(event.message)) return event.message;
  }
}
const isEnd = ({ type }) => /^response\.(completed|failed|incomplete)$/.test(type);
const end = async (streamId) => {
  const last = await next((message) => isEnd(message) && (streamId === undefined || message.stream_id === streamId));
  return last.response ?? last;
};
const of = (type) => next((message) => message.type === type);
const create = (fields) => ws.send({ type: "response.create", model: "core-3", store: false, ...fields });

create({ input: "hello [[text#node]]" });
const first = await end();
create({ input: [{ role: "user", content: "and?" }], previous_response_id: first.id });
const second = await end();
said.continued = [first.output[0].content[0].text, second.previous_response_id === first.id];
create({ stream_id: "slow", input: "[[slow#node]]" });
create({ stream_id: "quick", input: "[[text#node]]" });
said.streams = [(await end("quick")).status, (await end("slow")).status];
create({ input: "[[slow#node-steered]]" });
const { response } = await of("response.created");
ws.send({ type: "response.steer", previous_response_id: response.id, input: "shorter" });
said.steered = (await of("response.steer.accepted")).steer.previous_response_id === response.id;
await end();
said.successor = (await end()).previous_response_id === response.id;
create({ input: "x", previous_response_id: "resp_missing" });
said.refused = (await end()).error.error.code; // the event
ws.close();
console.log(JSON.stringify(said));
