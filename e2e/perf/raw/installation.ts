import { generateKeyPairSync } from 'node:crypto';
import { type RawProgram, startRaw } from './child.ts';
import type { Identity } from './wire.ts';

export interface RawSettings extends Identity {
  readonly databaseUrl: string;
  readonly schema: string;
  /** Each validator's log is this name and its index. */
  readonly logFile: string;
  readonly validators: number;
  /** Threads that verify in each validator. */
  readonly workers: number;
  /** Threads that verify in the store. */
  readonly storeWorkers: number;
}

/** The raw ledger as processes with the product's hops between them: validators, store and signer. */
export interface RawInstallation {
  /** The validators' HTTPS listeners. */
  readonly validatorUrls: readonly string[];
  /** The store's HTTPS listener: forwards transactions and waits until they are stored. */
  readonly storeUrl: string;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

export async function startRawInstallation(settings: RawSettings): Promise<RawInstallation> {
  const keys = Array.from({ length: settings.validators }, () => generateKeyPairSync('ed25519'));
  const signer = await startRaw(new URL('./signer.ts', import.meta.url), {
    ...settings,
    schema: `${settings.schema}_signer`,
    signingKeys: keys.map(({ privateKey }) => privateKey.export({ type: 'pkcs8', format: 'pem' })),
  });
  const store = await startRaw(new URL('./store.ts', import.meta.url), {
    ...settings,
    workers: settings.storeWorkers,
  });
  const [storePort, storeHttps] = store.said.split(' ');
  const members = keys.map((_, self) =>
    startRaw(new URL('./ledger.ts', import.meta.url), {
      ...settings,
      logFile: `${settings.logFile}-${self}`,
      storePort: Number(storePort),
      signerPort: Number(signer.said),
      self,
      keys: keys.map(({ publicKey }) =>
        Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64'),
      ),
    }),
  );
  const validators = await Promise.all(members);
  const ports = validators.map(({ said }) => said.split(' '));
  await Promise.all(validators.map((one) => one.tell(ports.map(([port]) => port).join(','))));
  await store.tell(ports[0]?.[0] ?? '');
  const programs: RawProgram[] = [...validators, store, signer];
  return {
    validatorUrls: ports.map(([, https]) => `https://127.0.0.1:${https}`),
    storeUrl: `https://127.0.0.1:${storeHttps}`,
    pids: programs.map(({ pid }) => pid),
    stop: async () => {
      await Promise.all(programs.map((program) => program.stop()));
    },
  };
}
