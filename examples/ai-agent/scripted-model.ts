import { MockLanguageModelV3 } from 'ai/test';

const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/** Replaces a real model, so that the example needs no API key: calls the tool once, then answers with the page's text. */
export function scriptedModel(url: string): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1);
      const result = last?.role === 'tool' ? last.content.at(-1) : undefined;
      if (result?.type === 'tool-result' && result.output.type === 'json') {
        const { title, text } = result.output.value as { title: string; text: string };
        const answer = `The page is called "${title}", and says: ${text}`;
        return step('stop', { type: 'text', text: answer });
      }
      const input = JSON.stringify({ url });
      return step('tool-calls', { type: 'tool-call', toolCallId: 'call-1', toolName: 'readPage', input });
    },
  });
}

function step<Reason, Content>(reason: Reason, content: Content) {
  return { content: [content], finishReason: { unified: reason, raw: undefined }, usage, warnings: [] };
}
