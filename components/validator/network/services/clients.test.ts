import { expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { retryOnce } from './clients.ts';

const away = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'the service is stopping');

/** A call that fails that many times before it answers. */
function failing(times: number, error: AppError) {
  let asked = 0;
  const ask = async () => {
    asked += 1;
    if (asked <= times) throw error;
    return 'answer';
  };
  return { ask, asked: () => asked };
}

test('a call that ended with its service is retried once', async () => {
  const { ask, asked } = failing(1, away);
  await expect(retryOnce(ask)).resolves.toBe('answer');
  expect(asked()).toBe(2);
});

test.each([
  ['the second request fails too', 2, away, 2],
  ['it took too long', 1, new AppError('timeout', 'TIMEOUT', 'no answer in time'), 1],
  ['it is refused', 1, new AppError('forbidden', 'FORBIDDEN', 'not a validator'), 1],
])('a call fails when %s', async (_, times, error, expected) => {
  const { ask, asked } = failing(times, error);
  await expect(retryOnce(ask)).rejects.toBe(error);
  expect(asked()).toBe(expected);
});
