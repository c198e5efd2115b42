import type { Verifier } from '#core/crypto/verify.ts';
import { cosignatureBlob, cosignatureBytes, type NoteKey, noteLine } from '#core/ledger/checkpoint.ts';
import { cosignerKeys } from '#core/ledger/verification/head-checkpoint.ts';
import type { Reader } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Cosignature, ValidatorAddress } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { FindMembers } from '../../registers/directory/ask.ts';
import { membersAt, type Register } from '../../registers/state/store.ts';

/** Validators that cosign checkpoints of a register. */
export interface Cosigners {
  /** Verifier keys of the members at the register's height, by validator id. */
  keys(register: Register): Promise<readonly NoteKey[]>;
  /** The lines of the members that answer with a valid signature; `complete` when all of them do. */
  collect(
    register: Register,
    checkpoint: { readonly body: string; readonly size: number; readonly rootHash: Uint8Array },
  ): Promise<{ readonly lines: readonly string[]; readonly complete: boolean }>;
}

interface CosignersDeps {
  readonly db: Reader<RegisterSchema>;
  readonly findMembers: FindMembers;
  readonly verifier: Verifier;
  readonly log: Logger;
  cosign(
    at: ValidatorAddress,
    request: { readonly registerId: string; readonly size: number; readonly rootHash: Uint8Array },
  ): Promise<Cosignature>;
}

export function createCosigners(deps: CosignersDeps): Cosigners {
  const { db, verifier, log } = deps;

  async function keysById(register: Register): Promise<ReadonlyMap<string, NoteKey>> {
    const members = await membersAt(db, register.registerNo, register.height);
    return cosignerKeys(register.networkId, members);
  }

  return {
    keys: async (register) => [...(await keysById(register)).values()],
    async collect(register, { body, size, rootHash }) {
      const { registerId } = register;
      const keys = await keysById(register);
      const addresses = await deps.findMembers(register.registerNo);
      const calls = addresses.flatMap((at) => {
        const key = keys.get(at.validatorId);
        return key === undefined || at.endpoint === '' ? [] : [{ at, key }];
      });
      const answers = await Promise.all(
        calls.map(async ({ at, key }) => {
          try {
            const { timeSeconds, signature } = await deps.cosign(at, { registerId, size, rootHash });
            const message = cosignatureBytes(body, timeSeconds);
            const { publicKey } = key;
            const holds = verifier.verify({ algorithm: 'ED25519', publicKey, message, signature });
            if (holds) return noteLine(key, cosignatureBlob(timeSeconds, signature));
            log.warn(
              { registerId, validatorId: at.validatorId, size },
              'the cosignature of a validator does not verify',
            );
          } catch (error) {
            log.info(
              { err: error, registerId, validatorId: at.validatorId, size },
              'a validator did not cosign a checkpoint',
            );
          }
          return undefined;
        }),
      );
      const lines = answers.filter((line) => line !== undefined).toSorted();
      return { lines, complete: lines.length === keys.size };
    },
  };
}
