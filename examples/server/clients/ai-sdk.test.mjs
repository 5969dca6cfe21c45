import assert from "node:assert/strict";
import test from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embed, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { BASE_URL, KEY, CONTROL } = process.env;
const openai = createOpenAI({ baseURL: BASE_URL, apiKey: KEY });
const compatible = createOpenAICompatible({ name: "gateway", baseURL: BASE_URL, apiKey: KEY, includeUsage: true });
const text = "Hello from 日本, <world> & more";
const models = { openai: (id) => openai.chat(id), compatible: (id) => compatible(id) };
const tools = {
  weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "21" }),
  time: tool({ inputSchema: z.object({}), execute: async () => "noon" }),
};

for (const [name, model] of Object.entries(models)) {
  test(`${name}: chat`, async () => {
    const answer = await generateText({ model: model("chat"), prompt: "hello", maxRetries: 0 });
    assert.equal(answer.text, text);
    assert.equal(answer.finishReason, "stop");
    assert.equal(answer.usage.totalTokens, 150);
  });

  test(`${name}: stream`, async () => {
    const answer = streamText({ model: model("chat"), prompt: "hello", maxRetries: 0 });
    let got = "";
    for await (const piece of answer.textStream) got += piece;
    assert.equal(got, text);
    assert.equal(await answer.finishReason, "stop");
    assert.equal((await answer.usage).totalTokens, 150);
  });

  test(`${name}: tools`, async () => {
    const plain = await generateText({ model: model("tools"), prompt: "hello", tools, stopWhen: stepCountIs(3), maxRetries: 0 });
    assert.equal(plain.text, "It is 21 degrees in Paris.");
    for (const id of ["tools", "odd-tools"]) {
      const streamed = streamText({ model: model(id), prompt: "hello", tools, stopWhen: stepCountIs(3), maxRetries: 0 });
      assert.equal(await streamed.text, "It is 21 degrees in Paris.", id);
      const calls = (await streamed.steps)[0].toolCalls.map((c) => [c.toolCallId, c.toolName, c.input]);
      assert.deepEqual(calls, [["call_1", "weather", { city: "Paris" }], ["call_2", "time", {}]]);
    }
  });

  test(`${name}: structured output`, async () => {
    const answer = await generateObject({ model: model("json"), prompt: "hello", schema: z.object({ city: z.string(), celsius: z.number() }), maxRetries: 0 });
    assert.deepEqual(answer.object, { city: "Paris", celsius: 21 });
  });

  test(`${name}: errors`, async () => {
    for (const [id, status, retryable] of [["nothing", 404, false], ["limited", 429, true], ["failing", 502, true]]) {
      await assert.rejects(generateText({ model: model(id), prompt: "hello", maxRetries: 0 }), (err) => {
        assert.ok(APICallError.isInstance(err), `${err}`);
        assert.equal(err.statusCode, status);
        assert.equal(err.isRetryable, retryable);
        if (status === 429) assert.equal(err.responseHeaders["retry-after"], "7");
        return true;
      });
    }
  });

  test(`${name}: a stream that is cut is an error`, async () => {
    let failure;
    const answer = streamText({ model: model("cut"), prompt: "hello", maxRetries: 0, onError: ({ error }) => { failure = error; } });
    let got = "";
    for await (const piece of answer.textStream) got += piece;
    assert.equal(got, "half an ");
    assert.ok(failure);
  });

  test(`${name}: abort`, async () => {
    const aborted = async () => Number(await (await fetch(CONTROL + "/aborted")).text());
    const before = await aborted();
    const controller = new AbortController();
    const answer = streamText({ model: model("endless"), prompt: "hello", abortSignal: controller.signal, maxRetries: 0, onError: () => {} });
    for await (const piece of answer.textStream) if (piece) controller.abort();
    for (let i = 0; i < 500 && (await aborted()) !== before + 1; i++) await new Promise((r) => setTimeout(r, 10));
    assert.equal(await aborted(), before + 1);
  });
}

test("embeddings", async () => {
  for (const model of [openai.textEmbeddingModel("embed"), compatible.textEmbeddingModel("embed")]) {
    const answer = await embed({ model, value: "hello", maxRetries: 0 });
    assert.deepEqual(answer.embedding, [0.5, -1, 0.25, 2]);
    assert.equal(answer.usage.tokens, 8);
  }
});

test("provider options arrive", async () => {
  await generateText({ model: compatible("mirror"), prompt: "hello", providerOptions: { gateway: { enable_thinking: false } }, maxRetries: 0 });
  const last = await (await fetch(CONTROL + "/last")).json();
  assert.equal(last.enable_thinking, false);
});
