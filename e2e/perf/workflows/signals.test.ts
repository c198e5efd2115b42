import { describe, expect, test } from 'vitest';
import { Inbox } from './signals.ts';

describe('signals that a row waits for', () => {
  test('serve one call each, early or late', async () => {
    const inbox = new Inbox();
    inbox.add('a');
    await inbox.take('a', 10);
    const later = inbox.take('a', 1_000);
    inbox.add('b');
    inbox.add('a');
    await later;
    await expect(inbox.take('a', 10)).rejects.toThrow('no signal "a"');
    await inbox.take('b', 10);
  });

  test('a call that gave up takes no later signal', async () => {
    const inbox = new Inbox();
    await expect(inbox.take('a', 5)).rejects.toThrow();
    inbox.add('a');
    await inbox.take('a', 10);
  });
});
