import { refusal } from '../../errors.ts';
import type { Living } from './one-time.ts';
import type { Dead } from './store.ts';

/** @throws TOKEN_EXPIRED, TOKEN_USED, TOKEN_UNKNOWN */
export function requireLiving<Payload>(found: Living<Payload> | Dead): Living<Payload> {
  if (typeof found !== 'string') return found;
  throw refusal(found === 'expired' ? 'TOKEN_EXPIRED' : found === 'used' ? 'TOKEN_USED' : 'TOKEN_UNKNOWN');
}
