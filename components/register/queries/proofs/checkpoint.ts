import { decodeBase64Any } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import {
  checkpointBody,
  checkpointNote,
  checkpointOrigin,
  NOTE_KINDS,
  type NoteKey,
  noteLine,
  verifierKey,
} from '#core/ledger/checkpoint.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { WalletKey, Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { frontierOf } from '../../ledger/writing/chain.ts';
import type { Register } from '../../registers/state/store.ts';
import type { Cosigners } from './cosigners.ts';

export interface Checkpoints {
  /**
   * The C2SP checkpoint of the register at its current size: the log's line, signed once per size and cached, and a
   * cosignature of every reachable validator.
   */
  checkpoint(register: Register): Promise<string>;
  /** The verifier key of the log's signature line. */
  key(register: Register): Promise<string>;
  /** Verifier keys of the validators' cosignature lines. */
  cosignerKeys(register: Register): Promise<readonly string[]>;
}

interface CheckpointsDeps {
  readonly wallets: Wallets;
  readonly cosigners: Cosigners;
  readonly clock: Clock;
}

interface CachedCheckpoint {
  readonly size: number;
  readonly signed: Promise<{ readonly body: string; readonly line: string }>;
  /** Cosignature lines and their expiry; they do not expire once every member has signed. */
  lines: Promise<readonly string[]> | undefined;
  untilMs: number;
}

const keptRegisters = 1_000;
/** Members that were unreachable for a checkpoint are called again after this long. */
const askAgainMs = 2_000;

function noteKeyOf(register: Register, key: WalletKey): NoteKey {
  if (key.algorithm !== 'ED25519') {
    throw new AppError('internal', 'INTERNAL_ERROR', 'Checkpoints need an Ed25519 system key.');
  }
  const name = checkpointOrigin(register.networkId, register.registerId);
  return { name, kind: NOTE_KINDS.log, publicKey: decodeBase64Any(key.publicKey) };
}

/** Size and root of a register's log. */
function logHead(register: Register): { readonly size: number; readonly root: Uint8Array } {
  if (register.height === 0) throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
  return { size: register.height, root: frontierOf(register).root() };
}

export function createCheckpoints({ wallets, cosigners, clock }: CheckpointsDeps): Checkpoints {
  const cached = new Map<string, CachedCheckpoint>();

  async function sign(register: Register) {
    const { size, root } = logHead(register);
    const origin = checkpointOrigin(register.networkId, register.registerId);
    const body = checkpointBody({ origin, size, rootHash: root });
    const { signature, key } = await wallets.signCheckpoint(register.registerId, body);
    return { body, line: noteLine(noteKeyOf(register, key), signature) };
  }

  function remember(register: Register): CachedCheckpoint {
    const { registerId, height } = register;
    const known = cached.get(registerId);
    if (known !== undefined && known.size >= height) return known;
    const fresh: CachedCheckpoint = { size: height, signed: sign(register), lines: undefined, untilMs: 0 };
    cached.delete(registerId);
    cached.set(registerId, fresh);
    fresh.signed.catch(() => cached.delete(registerId));
    const [oldest] = cached.keys();
    if (cached.size > keptRegisters && oldest !== undefined) cached.delete(oldest);
    return fresh;
  }

  async function collect(
    register: Register,
    one: CachedCheckpoint,
    body: string,
  ): Promise<readonly string[]> {
    const { size, root: rootHash } = logHead(register);
    const { lines, complete } = await cosigners.collect(register, { body, size, rootHash });
    one.untilMs = complete ? Number.POSITIVE_INFINITY : clock.nowMs() + askAgainMs;
    return lines;
  }

  return {
    async checkpoint(register) {
      const one = remember(register);
      const { body, line } = await one.signed;
      // a register that was read earlier may be behind the cached checkpoint: cosignatures for it cannot be requested
      const mayAsk = one.size === register.height;
      if (mayAsk && (one.lines === undefined || clock.nowMs() >= one.untilMs)) {
        one.untilMs = Number.POSITIVE_INFINITY;
        one.lines = collect(register, one, body);
        one.lines.catch(() => {
          one.lines = undefined;
        });
      }
      return checkpointNote(body, [line, ...((await one.lines) ?? [])]);
    },
    async key(register) {
      return verifierKey(noteKeyOf(register, await wallets.systemKey()));
    },
    async cosignerKeys(register) {
      return (await cosigners.keys(register)).map(verifierKey);
    },
  };
}
