import { decodeBase64Any } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
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
import type { WalletKey, Wallets } from '../clients.ts';
import { frontierOf } from '../dockets/chain.ts';
import { refusal } from '../errors.ts';
import type { Register } from '../registers/store.ts';

export interface Checkpoints {
  /** The C2SP checkpoint of the register as it stands: signed once per size, then remembered (D25). */
  checkpoint(register: Register): Promise<string>;
  /** The verifier key of the log's signature line. */
  key(register: Register): Promise<string>;
}

const keptRegisters = 1_000;

function noteKeyOf(register: Register, key: WalletKey): NoteKey {
  if (key.algorithm !== 'ED25519') {
    throw new AppError('internal', 'INTERNAL_ERROR', 'Checkpoints need an Ed25519 system key.');
  }
  const name = checkpointOrigin(register.networkId, register.registerId);
  return { name, kind: NOTE_KINDS.log, publicKey: decodeBase64Any(key.publicKey) };
}

/** Size and root of a register's log: its dockets so far. */
export function logHead(register: Register): { readonly size: number; readonly root: Uint8Array } {
  if (register.height === 0) throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
  return { size: register.height, root: frontierOf(register).root() };
}

export function createCheckpoints(wallets: Wallets): Checkpoints {
  const kept = new Map<string, { readonly size: number; readonly note: Promise<string> }>();

  async function sign(register: Register): Promise<string> {
    const { size, root } = logHead(register);
    const origin = checkpointOrigin(register.networkId, register.registerId);
    const body = checkpointBody({ origin, size, rootHash: root });
    const { signature, key } = await wallets.signCheckpoint(register.registerId, body);
    return checkpointNote(body, [noteLine(noteKeyOf(register, key), signature)]);
  }

  return {
    checkpoint(register) {
      const { registerId, height } = register;
      const known = kept.get(registerId);
      if (known !== undefined && known.size >= height) return known.note;
      const note = sign(register);
      kept.delete(registerId);
      kept.set(registerId, { size: height, note });
      note.catch(() => kept.delete(registerId));
      const [oldest] = kept.keys();
      if (kept.size > keptRegisters && oldest !== undefined) kept.delete(oldest);
      return note;
    },
    async key(register) {
      return verifierKey(noteKeyOf(register, await wallets.systemKey()));
    },
  };
}

/** The log as JSON answers name it beside a proof. */
export function presentLogHead(register: Register): { size: number; rootHash: string } {
  const { size, root } = logHead(register);
  return { size, rootHash: encodeHex(root) };
}
