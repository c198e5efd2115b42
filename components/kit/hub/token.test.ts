import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { connectionTokens } from './token.ts';

const scope = { path: '/hubs/rooms', userId: 'ada' };
const owner = { host: '10.0.0.7', port: 7443 };
const tokens = connectionTokens(Buffer.alloc(32, 1));
const nowMs = Date.UTC(2026, 10, 25);

describe('connection tokens', () => {
  it('name the replica, the time and 128 random bits', () => {
    const { id, text } = tokens.issue(scope, owner, nowMs);
    expect(tokens.verify(scope, text)).toEqual({ id, owner, issuedAtMs: nowMs });
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(tokens.issue(scope, owner, nowMs).id).not.toBe(id);
  });

  it('are of one hub, one user and one key', () => {
    const { text } = tokens.issue(scope, owner, nowMs);
    expect(tokens.verify({ ...scope, userId: 'bob' }, text)).toBeUndefined();
    expect(tokens.verify({ ...scope, path: '/hubs/others' }, text)).toBeUndefined();
    expect(connectionTokens(Buffer.alloc(32, 2)).verify(scope, text)).toBeUndefined();
  });

  it('are refused with any byte changed, and whatever else is sent', () => {
    const bytes = Buffer.from(tokens.issue(scope, owner, nowMs).text, 'base64url');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(tokens.verify(scope, changed.toString('base64url'))).toBeUndefined();
    }
    fc.assert(fc.property(fc.string(), (text) => tokens.verify(scope, text) === undefined));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (random) => {
        expect(tokens.verify(scope, Buffer.from(random).toString('base64url'))).toBeUndefined();
      }),
    );
  });
});
