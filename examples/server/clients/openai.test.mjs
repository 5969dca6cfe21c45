import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const { BASE_URL, KEY, CONTROL } = process.env;
const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });
const hello = [{ role: "user", content: "hello" }];
const text = "Hello from 日本, <world> & more";
const tools = [
  { type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } },
  { type: "function", function: { name: "time", parameters: { type: "object", properties: {} } } },
];

async function until(condition) {
  for (let i = 0; i < 500; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail("it did not happen within 5 s");
}

test("chat", async () => {
  const { data, response } = await client.chat.completions.create({ model: "chat", messages: hello }).withResponse();
  assert.equal(data.choices[0].message.content, text);
  assert.equal(data.usage.total_tokens, 150);
  assert.equal(data._request_id, response.headers.get("x-gateway-trace-id"));
  assert.equal(response.headers.get("x-gateway-cost-usd"), "0.000600");
});

test("stream", async () => {
  for (const wanted of [undefined, { include_usage: false }, { include_usage: true }]) {
    const stream = await client.chat.completions.create({ model: "chat", messages: hello, stream: true, stream_options: wanted });
    let got = "", usage = 0, finish;
    for await (const chunk of stream) {
      got += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      if (chunk.usage) usage++;
      if (!wanted?.include_usage) assert.ok(!("usage" in chunk), "a usage member that nobody asked for");
    }
    assert.equal(got, text);
    assert.equal(finish, "stop");
    assert.equal(usage, wanted?.include_usage ? 1 : 0);
  }
});

test("stream helper", async () => {
  const stream = client.chat.completions.stream({ model: "chat", messages: hello });
  assert.equal(await stream.finalContent(), text);
});

test("parallel tool calls, plain and streamed", async () => {
  const plain = await client.chat.completions.create({ model: "tools", messages: hello, tools });
  const streamed = await client.chat.completions.stream({ model: "tools", messages: hello, tools }).finalChatCompletion();
  for (const answer of [plain, streamed]) {
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.deepEqual(answer.choices[0].message.tool_calls.map((c) => [c.id, c.function.name, JSON.parse(c.function.arguments)]),
      [["call_1", "weather", { city: "Paris" }], ["call_2", "time", {}]]);
  }
});

test("runTools", async () => {
  for (const stream of [false, true]) {
    for (const model of stream ? ["tools", "odd-tools"] : ["tools"]) {
      const seen = [];
      const runner = client.chat.completions.runTools({
        model, stream, messages: hello,
        tools: tools.map((t) => ({ type: "function", function: { ...t.function, parse: JSON.parse, function: (args) => { seen.push([t.function.name, args]); return "21"; } } })),
      });
      assert.equal(await runner.finalContent(), "It is 21 degrees in Paris.", model);
      assert.deepEqual(seen, [["weather", { city: "Paris" }], ["time", {}]]);
    }
  }
});

test("structured output", async () => {
  const schema = z.object({ city: z.string(), celsius: z.number() });
  const request = { messages: hello, response_format: zodResponseFormat(schema, "report") };
  const answer = await client.chat.completions.parse({ model: "json", ...request });
  assert.deepEqual(answer.choices[0].message.parsed, { city: "Paris", celsius: 21 });
  await assert.rejects(client.chat.completions.parse({ model: "length", ...request }), OpenAI.LengthFinishReasonError);
});

test("embeddings", async () => {
  for (const encoding_format of [undefined, "float", "base64"]) {
    const answer = await client.embeddings.create({ model: "embed", input: "hello", encoding_format });
    const got = answer.data[0].embedding;
    assert.deepEqual(encoding_format === "base64" ? got : Array.from(got), encoding_format === "base64" ? "AAAAPwAAgL8AAIA+AAAAQA==" : [0.5, -1, 0.25, 2]);
    assert.equal(answer.usage.total_tokens, 8);
  }
});

test("errors", async () => {
  const call = (model, c = client, extra = {}) => () => c.chat.completions.create({ model, messages: hello, ...extra });
  const bad = new OpenAI({ baseURL: BASE_URL, apiKey: "wrong-SECRET", maxRetries: 0 });
  const cases = [
    [call("chat", bad), OpenAI.AuthenticationError, 401, "invalid_api_key"],
    [call("nothing"), OpenAI.NotFoundError, 404, "model_not_found"],
    [call("chat", client, { stream: "yes" }), OpenAI.BadRequestError, 400, "invalid_request"],
    [call("limited"), OpenAI.RateLimitError, 429, "upstream_rate_limited"],
    [call("limited", client, { stream: true }), OpenAI.RateLimitError, 429, "upstream_rate_limited"],
    [call("failing"), OpenAI.InternalServerError, 502, "upstream_error"],
  ];
  for (const [send, kind, status, code] of cases) {
    await assert.rejects(send, (err) => {
      assert.ok(err instanceof kind, `${err}`);
      assert.equal(err.status, status);
      assert.equal(err.code, code);
      assert.ok(err.type && err.requestID && err.requestID === err.headers.get("x-request-id"));
      assert.ok(!/SECRET|secrets|html/.test(err.message), err.message);
      if (status === 429) assert.equal(err.headers.get("retry-after"), "7");
      return true;
    });
  }
});

test("the gateway has given up: the client does not try again", async () => {
  const patient = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 2 });
  let sent = 0;
  patient.fetch = (...args) => { sent++; return fetch(...args); };
  await assert.rejects(patient.chat.completions.create({ model: "failing", messages: hello }));
  assert.equal(sent, 1);
});

test("too large", async () => {
  const big = { model: "chat", messages: [{ role: "user", content: "x".repeat(33 << 20) }] };
  await assert.rejects(client.chat.completions.create(big), (err) => err.status === 413 && err.code === "request_too_large");
});

test("a stream that is cut raises", async () => {
  const stream = await client.chat.completions.create({ model: "cut", messages: hello, stream: true });
  let got = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) got += chunk.choices[0]?.delta?.content ?? "";
  }, OpenAI.APIError);
  assert.equal(got, "half an ");
});

test("abort stops the upstream", async () => {
  const aborted = async () => Number(await (await fetch(CONTROL + "/aborted")).text());
  const before = await aborted();
  const stream = await client.chat.completions.create({ model: "endless", messages: hello, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) break; // leaves the loop, which aborts the request
  }
  const controller = new AbortController();
  const plain = client.chat.completions.create({ model: "endless", messages: hello }, { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(plain, OpenAI.APIUserAbortError);
  await until(async () => (await aborted()) === before + 2);
});

test("models", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes("chat") && ids.includes("org/chat:7b"));
  assert.equal((await client.models.retrieve("org/chat:7b")).id, "org/chat:7b");
  await assert.rejects(client.models.retrieve("nothing"), OpenAI.NotFoundError);
});

test("members that nobody has heard of arrive", async () => {
  const extra = { enable_thinking: false, extra_body: { google: { cached_content: "c1" } }, x: [1, { y: null }] };
  await client.chat.completions.create({ model: "mirror", messages: hello, ...extra });
  const last = await (await fetch(CONTROL + "/last")).json();
  assert.deepEqual(last, { model: "mirror", messages: hello, ...extra });
});
