import { createHash } from 'node:crypto';
import type { Outbound } from '#kit/outbound/outbound.ts';

/** Asks whether a password is among those of known breaches. */
export interface BreachedPasswords {
  isBreached(password: string): Promise<boolean>;
}

interface RangeOptions {
  /** Address to which the first five digits are added, as `https://api.pwnedpasswords.com/range`. */
  readonly url: string;
  readonly outbound: Outbound;
  /** Called for a question that got no usable answer. */
  readonly onFailed: (error: unknown) => void;
}

const prefixLength = 5;
const limits = { timeoutMs: 1_000, maxBytes: 262_144 };
/** A line: the other digits of a hash, and how often it was seen; padding is seen zero times. */
const seen = /^([0-9A-F]{35}):([0-9]{1,15})$/i;

/**
 * Asks a service with the range interface of Pwned Passwords: it learns the first five hexadecimal digits of the SHA-1
 * of the password, which thousands of passwords share, and the answer is padded to hide its length. A service that does
 * not answer within a second refuses no password.
 */
export function breachedByRange({ url, outbound, onFailed }: RangeOptions): BreachedPasswords {
  const base = url.replace(/\/+$/, '');
  return {
    async isBreached(password) {
      const digest = createHash('sha1').update(password, 'utf8').digest('hex').toUpperCase();
      const rest = digest.slice(prefixLength);
      try {
        const headers = { 'add-padding': 'true', accept: 'text/plain' };
        const answer = await outbound.send(`${base}/${digest.slice(0, prefixLength)}`, { headers, limits });
        if (answer.status !== 200)
          throw new Error(`the service of breached passwords answered ${answer.status}`);
        return answer.body
          .toString('latin1')
          .split('\n')
          .map((line) => seen.exec(line.trim()))
          .some((found) => found?.[1]?.toUpperCase() === rest && Number(found[2]) > 0);
      } catch (error) {
        onFailed(error);
        return false;
      }
    },
  };
}
