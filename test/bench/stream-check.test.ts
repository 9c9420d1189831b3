// The load client's own checks: a stream that lost, doubled or moved a token, or its end, does not pass.
import { expect, test } from "bun:test";
import { answerEvents, answerText } from "../../bench/answer.ts";
import { clientDialects } from "../../bench/dialect.ts";
import { ReplyReader } from "../../bench/reply-reader.ts";
import { StreamCheck } from "../../bench/stream-client.ts";

const shape = { tokens: 4, tokenBytes: 7 };
const events = answerEvents(shape);

function failureOf(stream: readonly string[], status = 200): string | null {
  const check = new StreamCheck(clientDialects.chat, answerText(shape));
  for (const event of stream) check.read(event);
  return check.failure(status);
}

test("a whole stream passes, cut anywhere", () => {
  const stream = events.role + events.tokens.join("") + events.end.join("");
  expect(failureOf([stream])).toBeNull();
  expect(failureOf([...stream])).toBeNull();
});

test("a lost, doubled, moved or foreign token is noticed", () => {
  const [first, second, third, fourth] = events.tokens as [string, string, string, string];
  const whole = (tokens: readonly string[]) => [events.role, ...tokens, ...events.end];
  expect(failureOf(whole([first, third, fourth]))).toContain("t00002");
  expect(failureOf(whole([first, second, second, third, fourth]))).toContain("t00001");
  expect(failureOf(whole([second, first, third, fourth]))).toContain("t00001");
  expect(failureOf(whole([first, second, third]))).toBe("21 of 28 characters arrived");
});

test("a missing terminator or another status is noticed", () => {
  expect(failureOf([events.role, ...events.tokens])).toBe("no terminator");
  expect(failureOf([], 429)).toStartWith("status 429");
});

test("a reply is read alike however it is cut, and the next one after it", () => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
  const fixed = "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno!";
  for (let cut = 1; cut < chunked.length; cut++) {
    const reader = new ReplyReader();
    expect(replyFrom(reader, [chunked.slice(0, cut), chunked.slice(cut)])).toEqual({ status: 200, text: "hello!" });
    expect(replyFrom(reader, [fixed])).toEqual({ status: 404, text: "no!" });
  }
});

test("bytes that nobody asked for are an error", () => {
  expect(() => new ReplyReader().feed("HTTP/1.1 200 OK\r\n\r\n")).toThrow("nobody asked for");
});

function replyFrom(reader: ReplyReader, parts: readonly string[]) {
  const reply = { status: 0, text: "" };
  reader.expect({
    body: (text) => (reply.text += text),
    end: (status) => (reply.status = status),
  });
  for (const part of parts) reader.feed(part);
  return reply;
}
