import { expect, it } from 'vitest';
import { hashPassword } from './hash.ts';
import { createPasswords } from './queue.ts';

const cheap = { memoryKiB: 64, passes: 1 };

it('verifies its own hashes and rejects other passwords', async () => {
  const passwords = await createPasswords({ concurrent: 1, waiting: 8, cost: cheap });
  const stored = await passwords.hash('Zwölf Boxkämpfer');
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(await passwords.verify('Zwölf Boxkämpfer', stored)).toEqual({ correct: true });
  expect(await passwords.verify('Zwölf Boxkämpfer'.normalize('NFD'), stored)).toEqual({ correct: true });
  expect(await passwords.verify('zwölf Boxkämpfer', stored)).toEqual({ correct: false });
  expect(await passwords.verify('no account has this password', undefined)).toEqual({ correct: false });
  expect(await passwords.verify('x', 'not a hash')).toEqual({ correct: false });
});

it('rehashes with the current cost parameters', async () => {
  const stored = await hashPassword('an older one', { memoryKiB: 32, passes: 1 });
  const passwords = await createPasswords({ concurrent: 1, waiting: 8, cost: cheap });
  const verdict = await passwords.verify('an older one', stored);
  expect(verdict.correct).toBe(true);
  expect(verdict.rehashed).toContain('m=64,t=1');
});

it('refuses requests beyond the queue limit and completes the others', async () => {
  const passwords = await createPasswords({ concurrent: 1, waiting: 2, cost: cheap });
  const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd'].map((one) => passwords.hash(one)));
  expect(outcomes.map((one) => one.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
  expect(outcomes[3]).toMatchObject({ reason: { kind: 'unavailable' } });
  await expect(passwords.hash('e')).resolves.toContain('argon2id');
});
