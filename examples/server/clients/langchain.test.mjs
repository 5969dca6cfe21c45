import assert from "node:assert/strict";
import test from "node:test";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { z } from "zod";

const { BASE_URL, KEY, CONTROL } = process.env;
const text = "Hello from 日本, <world> & more";
const configuration = { baseURL: BASE_URL };
const chat = (model, extra = {}) => new ChatOpenAI({ model, apiKey: KEY, configuration, maxRetries: 0, ...extra });
const weather = tool(async () => "21", { name: "weather", description: "d", schema: z.object({ city: z.string() }) });
const time = tool(async () => "noon", { name: "time", description: "d", schema: z.object({}) });

test("chat", async () => {
  const answer = await chat("chat").invoke("hello");
  assert.equal(answer.content, text);
  assert.equal(answer.usage_metadata.total_tokens, 150);
});

test("stream", async () => {
  let sum;
  for await (const chunk of await chat("chat").stream("hello")) sum = sum ? sum.concat(chunk) : chunk;
  assert.equal(sum.content, text);
  assert.equal(sum.usage_metadata.total_tokens, 150);
});

test("tools", async () => {
  const want = [["call_1", "weather", { city: "Paris" }], ["call_2", "time", {}]];
  const plain = await chat("tools").bindTools([weather, time]).invoke("hello");
  assert.deepEqual(plain.tool_calls.map((c) => [c.id, c.name, c.args]), want);
  for (const model of ["tools", "odd-tools"]) {
    let sum;
    for await (const chunk of await chat(model).bindTools([weather, time]).stream("hello")) sum = sum ? sum.concat(chunk) : chunk;
    assert.deepEqual(sum.tool_calls.map((c) => [c.id, c.name, c.args]), want, model);
    assert.equal(sum.usage_metadata.total_tokens, 150, model);
  }
});

test("structured output", async () => {
  const schema = z.object({ city: z.string(), celsius: z.number() });
  const answer = await chat("json").withStructuredOutput(schema, { method: "jsonSchema" }).invoke("hello");
  assert.deepEqual(answer, { city: "Paris", celsius: 21 });
});

test("embeddings", async () => {
  const embeddings = new OpenAIEmbeddings({ model: "embed", apiKey: KEY, configuration, maxRetries: 0 });
  assert.deepEqual(await embeddings.embedQuery("hello"), [0.5, -1, 0.25, 2]);
});

test("errors", async () => {
  for (const [model, apiKey, status, code] of [
    ["nothing", KEY, 404, "MODEL_NOT_FOUND"], ["chat", "wrong", 401, "MODEL_AUTHENTICATION"], ["limited", KEY, 429, "MODEL_RATE_LIMIT"],
  ]) {
    await assert.rejects(chat(model, { apiKey }).invoke("hello"), (err) => {
      assert.equal(err.status, status, `${err}`);
      assert.equal(err.lc_error_code, code);
      return true;
    });
  }
});

test("a stream that is cut raises", async () => {
  await assert.rejects(async () => {
    for await (const _ of await chat("cut").stream("hello")); // eslint-disable-line no-unused-vars
  });
});

test("abort", async () => {
  const aborted = async () => Number(await (await fetch(CONTROL + "/aborted")).text());
  const before = await aborted();
  const controller = new AbortController();
  await assert.rejects(async () => {
    for await (const chunk of await chat("endless").stream("hello", { signal: controller.signal })) if (chunk.content) controller.abort();
  });
  for (let i = 0; i < 500 && (await aborted()) !== before + 1; i++) await new Promise((r) => setTimeout(r, 10));
  assert.equal(await aborted(), before + 1);
});

test("modelKwargs arrive", async () => {
  await chat("mirror", { modelKwargs: { enable_thinking: false } }).invoke("hello");
  const last = await (await fetch(CONTROL + "/last")).json();
  assert.equal(last.enable_thinking, false);
});
