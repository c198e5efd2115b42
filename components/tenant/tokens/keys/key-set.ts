import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { PublicJwk, TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { generateSigningKey, loadSigningKey, type SigningKey } from './jwt.ts';
import { planKeys } from './plan.ts';
import type { Protection } from './protection.ts';
import { insertKey, listKeys, lockKeys, moveKey, removeKeys, type StoredKey } from './store.ts';

/** A JWK set; the same object until the keys are reloaded. */
interface Jwks {
  readonly keys: readonly PublicJwk[];
}

/** The signing keys of the installation, as this replica last read them. */
export interface SigningKeySet {
  current(): SigningKey;
  /** Next, current and retired keys that a valid token may name. */
  jwks(): Jwks;
  /** Rotates the stored keys when due and reloads them. */
  refresh(): Promise<void>;
}

interface SigningKeySetOptions {
  readonly db: Database<TenantDatabase>;
  readonly protection: Protection;
  readonly clock: Clock;
  readonly rotationMs: number;
}

interface LoadedKeys {
  readonly current: SigningKey;
  readonly jwks: Jwks;
}

/** Resolves when the keys are loaded; throws when the protection key cannot decrypt them. */
export async function createSigningKeySet(options: SigningKeySetOptions): Promise<SigningKeySet> {
  let loaded = await load(options);
  return {
    current: () => loaded.current,
    jwks: () => loaded.jwks,
    refresh: async () => {
      loaded = await load(options, loaded);
    },
  };
}

async function load(options: SigningKeySetOptions, before?: LoadedKeys): Promise<LoadedKeys> {
  const rows = await rotate(options);
  const current = rows.find((row) => row.state === 'current');
  if (current === undefined) throw refusal('NO_SIGNING_KEY');
  return {
    current: before?.current.kid === current.kid ? before.current : open(options.protection, current),
    jwks: { keys: rows.map((row) => ({ ...row.publicJwk })) },
  };
}

function open(protection: Protection, row: StoredKey): SigningKey {
  try {
    return loadSigningKey(row.kid, protection.open(row.sealedPrivateKey, sealContextOf(row.kid)));
  } catch (cause) {
    throw refusal('PROTECTION_KEY_MISMATCH', { cause });
  }
}

function rotate(options: SigningKeySetOptions): Promise<StoredKey[]> {
  const { clock, protection, rotationMs } = options;
  return options.db.transact(async (tx) => {
    await lockKeys(tx);
    const atMs = clock.nowMs();
    const plan = planKeys(await listKeys(tx), atMs, rotationMs);
    const make = async (state: 'next' | 'current') => {
      const { publicJwk, privateKeyDer } = generateSigningKey();
      const sealed = protection.seal(privateKeyDer, sealContextOf(publicJwk.kid));
      await insertKey(tx, { kid: publicJwk.kid, state, publicJwk, sealed }, atMs);
    };
    await removeKeys(tx, plan.remove);
    if (plan.retire !== undefined) await moveKey(tx, plan.retire, { to: 'retired', atMs });
    if (plan.promote === 'new') await make('current');
    else if (plan.promote !== undefined) await moveKey(tx, plan.promote, { to: 'current', atMs });
    if (plan.makeNext) await make('next');
    return listKeys(tx);
  });
}

function sealContextOf(kid: string): string {
  return `signing_keys.sealed_private_key.${kid}`;
}
