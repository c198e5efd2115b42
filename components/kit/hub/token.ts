import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Endpoint } from '#kit/config/config.ts';

const idBytes = 16;
const timeBytes = 6;
const macBytes = 32;
const longestText = 512;

/** What a connection token says, once its HMAC is verified. */
export interface ConnectionToken {
  /** 128 random bits, as hex. */
  readonly id: string;
  /** The replica that issued it, and keeps connections that consist of several requests. */
  readonly owner: Endpoint;
  readonly issuedAtMs: number;
}

/** Binds a token to its hub and its user. */
interface TokenScope {
  readonly path: string;
  readonly userId: string;
}

/** Issues and verifies connection tokens under a key that all replicas of a component share. */
export interface ConnectionTokens {
  issue(scope: TokenScope, owner: Endpoint, nowMs: number): { readonly id: string; readonly text: string };
  /** Undefined for a token that no replica issued for this hub and user. */
  verify(scope: TokenScope, text: string): ConnectionToken | undefined;
}

/**
 * Connection tokens: base64url of 16 random bytes, the time of issue, the address of the replica and an
 * HMAC-SHA-256 over them, the hub and the user. A token grants nothing without the access token of the same user.
 */
export function connectionTokens(key: Buffer): ConnectionTokens {
  const mac = ({ path, userId }: TokenScope, content: Buffer) =>
    createHmac('sha256', key)
      .update(JSON.stringify([path, userId]))
      .update(content)
      .digest();
  return {
    issue(scope, owner, nowMs) {
      const id = randomBytes(idBytes);
      const time = Buffer.alloc(timeBytes);
      time.writeUIntBE(nowMs, 0, timeBytes);
      const content = Buffer.concat([
        id,
        time,
        Buffer.from(JSON.stringify([owner.host, owner.port]), 'utf8'),
      ]);
      const text = Buffer.concat([content, mac(scope, content)]).toString('base64url');
      return { id: id.toString('hex'), text };
    },
    verify(scope, text) {
      if (text.length > longestText || !/^[\w-]+$/.test(text)) return undefined;
      const bytes = Buffer.from(text, 'base64url');
      if (bytes.length <= idBytes + timeBytes + macBytes) return undefined;
      const content = bytes.subarray(0, -macBytes);
      if (!timingSafeEqual(mac(scope, content), bytes.subarray(-macBytes))) return undefined;
      const [host, port] = JSON.parse(content.subarray(idBytes + timeBytes).toString('utf8')) as [
        string,
        number,
      ];
      return {
        id: content.subarray(0, idBytes).toString('hex'),
        owner: { host, port },
        issuedAtMs: content.readUIntBE(idBytes, timeBytes),
      };
    },
  };
}
