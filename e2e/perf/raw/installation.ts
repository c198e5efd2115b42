import { generateKeyPairSync } from 'node:crypto';
import { type RawProgram, startRaw } from './child.ts';
import type { Identity } from './wire.ts';

export interface RawSettings extends Identity {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly logFile: string;
  readonly workers: number;
}

/** The raw ledger as three processes with the product's hops between them: validator, store and signer. */
export interface RawInstallation {
  /** The validator's HTTPS listener. */
  readonly validatorUrl: string;
  /** The store's HTTPS listener: passes transactions on and waits until they are stored. */
  readonly storeUrl: string;
  stop(): Promise<void>;
}

export async function startRawInstallation(settings: RawSettings): Promise<RawInstallation> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const signer = await startRaw(new URL('./signer.ts', import.meta.url), {
    ...settings,
    schema: `${settings.schema}_signer`,
    signingKey,
  });
  const store = await startRaw(new URL('./store.ts', import.meta.url), settings);
  const [storePort, storeHttps] = store.said.split(' ');
  const validator = await startRaw(new URL('./ledger.ts', import.meta.url), {
    ...settings,
    storePort: Number(storePort),
    signerPort: Number(signer.said),
  });
  const [validatorPort, validatorHttps] = validator.said.split(' ');
  await store.tell(validatorPort ?? '');
  const programs: RawProgram[] = [validator, store, signer];
  return {
    validatorUrl: `https://127.0.0.1:${validatorHttps}`,
    storeUrl: `https://127.0.0.1:${storeHttps}`,
    stop: async () => {
      await Promise.all(programs.map((program) => program.stop()));
    },
  };
}
