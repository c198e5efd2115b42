import { describe, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { Streams } from './inbound-streams.ts';
import { Questions } from './request-limiter.ts';

describe('the streams of one validator', () => {
  test('are bounded, and the newest stay open', async () => {
    const streams = new Streams();
    const ended: number[] = [];
    const lines = Array.from({ length: 1_000 }, (_, n) => {
      const line = streams.open('validator-1');
      void line.isOver.then(() => ended.push(n));
      return line;
    });
    const other = streams.open('validator-2');
    expect(streams.size).toBe(5);
    await waitFor(() => ended.length === 996);
    expect(lines.map((line) => line.isOpen()).lastIndexOf(false)).toBe(995);
    expect(other.isOpen()).toBe(true);
    for (const line of [...lines, other]) line.close();
    expect(streams.size).toBe(0);
  });
});

describe('the requests of one validator', () => {
  test('are refused above the limit of one second, while others are answered', () => {
    const questions = new Questions();
    const mebibyte = 1024 * 1024;
    let made = 0;
    const ask = (from: string) =>
      questions.answer(from, () => {
        made += 1;
        return { answer: made, sizeBytes: 8 * mebibyte };
      });
    const refused = expect.objectContaining({ kind: 'rate_limited', code: 'TOO_MANY_QUESTIONS' });
    for (let n = 0; n < 4; n += 1) ask('validator-1');
    expect(() => ask('validator-1')).toThrow(refused);
    expect(ask('validator-2')).toBe(5);
    expect(made).toBe(5);
  });
});
