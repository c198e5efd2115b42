import { describe, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { InboundStreams } from './inbound-streams.ts';
import { RequestLimiter } from './request-limiter.ts';

describe('the streams of one validator', () => {
  test('are bounded, and the newest stay open', async () => {
    const streams = new InboundStreams();
    const ended: number[] = [];
    const opened = Array.from({ length: 1_000 }, (_, n) => {
      const stream = streams.open('validator-1');
      void stream.isOver.then(() => ended.push(n));
      return stream;
    });
    const other = streams.open('validator-2');
    expect(streams.size).toBe(5);
    await waitFor(() => ended.length === 996);
    expect(opened.map((stream) => stream.isOpen()).lastIndexOf(false)).toBe(995);
    expect(other.isOpen()).toBe(true);
    for (const stream of [...opened, other]) stream.close();
    expect(streams.size).toBe(0);
  });
});

describe('the requests of one validator', () => {
  test('are refused above the limit of one second, while others are answered', () => {
    const queries = new RequestLimiter();
    const mebibyte = 1024 * 1024;
    let made = 0;
    const ask = (from: string) =>
      queries.answer(from, () => {
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
