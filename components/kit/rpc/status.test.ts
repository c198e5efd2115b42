import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { Inbox } from './inbox.ts';
import { appErrorOf, fromStatus, toStatus } from './status.ts';

const kinds: readonly ErrorKind[] = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'conflict',
  'gone',
  'unprocessable',
  'too_large',
  'rate_limited',
  'unavailable',
  'timeout',
  'bad_gateway',
];

describe('errors over gRPC', () => {
  for (const kind of kinds) {
    it(`${kind} arrives as it was thrown`, () => {
      const sent = new AppError(kind, 'SOME_CODE', 'text', { details: { a: 1 }, retryAfterSeconds: 2 });
      const back = fromStatus(toStatus(sent));
      expect(back).toMatchObject({
        kind,
        code: 'SOME_CODE',
        message: 'text',
        details: { a: 1 },
        retryAfterSeconds: 2,
      });
    });
  }

  it('internal ones lose text, code and details', () => {
    const wire = toStatus(new AppError('internal', 'DISK', 'secret path', { details: { path: '/x' } }));
    const back = fromStatus(wire);
    expect(JSON.stringify([wire.details, back.message, back.code, back.details])).not.toMatch(
      /secret|DISK|\/x/,
    );
    expect(appErrorOf(new Error('secret')).message).toBe('internal error');
    expect(appErrorOf('thrown text').kind).toBe('internal');
  });

  it('long ones are truncated to what trailers can carry', () => {
    const violations = Array.from({ length: 5_000 }, (_, at) => ({
      code: `VAL_${at}`,
      message: 'm'.repeat(20),
      severity: 'Error' as const,
    }));
    const back = fromStatus(toStatus(new AppError('invalid', 'LONG', 'text', { violations })));
    expect(back).toMatchObject({ kind: 'invalid', code: 'LONG' });
    expect(back.violations?.length).toBe(20);
    const huge = fromStatus(toStatus(new AppError('invalid', 'HUGE', 'x'.repeat(50_000))));
    expect(huge.message.length).toBe(1_024);
  });

  it('statuses of other implementations become kinds; damaged details are ignored', () => {
    const error = (code: status, detail?: string): ServiceError => {
      const metadata = new Metadata();
      if (detail !== undefined) metadata.set('chancery-error-bin', Buffer.from(detail));
      return Object.assign(new Error('x'), { code, details: 'x', metadata });
    };
    expect(fromStatus(error(status.UNIMPLEMENTED)).kind).toBe('internal');
    expect(fromStatus(error(status.DEADLINE_EXCEEDED)).kind).toBe('timeout');
    for (const detail of ['{', 'null', '{"kind":"toString","code":"a","message":"b"}', '{"kind":"gone"}']) {
      expect(fromStatus(error(status.NOT_FOUND, detail)).kind).toBe('not_found');
    }
  });
});

describe('inbox', () => {
  const source = () => {
    const calls: string[] = [];
    return { calls, pause: () => calls.push('pause'), resume: () => calls.push('resume') };
  };
  const collect = async (inbox: Inbox<number>): Promise<number[]> => {
    const items: number[] = [];
    for await (const item of inbox) items.push(item);
    return items;
  };

  it('delivers in order, before and after reading begins', async () => {
    const inbox = new Inbox<number>(source());
    inbox.push(1);
    const reading = collect(inbox);
    await new Promise((resolve) => setImmediate(resolve));
    inbox.push(2);
    inbox.push(3);
    inbox.end();
    expect(await reading).toEqual([1, 2, 3]);
  });

  it('delivers messages before an error; only the first end counts', async () => {
    const inbox = new Inbox<number>(source());
    inbox.push(1);
    inbox.end(new Error('first'));
    inbox.end();
    const items: number[] = [];
    const reading = (async () => {
      for await (const item of inbox) items.push(item);
    })();
    await expect(reading).rejects.toThrow('first');
    expect(items).toEqual([1]);
  });

  it('pauses its source while 64 wait and resumes it', async () => {
    const from = source();
    const inbox = new Inbox<number>(from);
    for (let at = 0; at < 100; at += 1) inbox.push(at);
    expect(from.calls).toEqual(['pause']);
    inbox.end();
    expect((await collect(inbox)).length).toBe(100);
    expect(from.calls).toEqual(['pause', 'resume']);
  });
});
