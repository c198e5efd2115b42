import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { createApi } from '../harness/api.ts';
import { signIn } from '../harness/journey.ts';
import { connectService, environmentOf } from '../harness/service-caller.ts';
import { type LocalState, startSystem } from '../harness/system.ts';
import { type Counts, script } from './programs.ts';

const bytes = z.string().transform((text) => Buffer.from(text, 'base64url'));
const recipientSchema = z.object({
  header: z.object({
    alg: z.string(),
    kid: z.string(),
    epk: z.object({ crv: z.string(), x: bytes, y: bytes.optional() }).optional(),
    apu: bytes.optional(),
    apv: bytes.optional(),
  }),
  encrypted_key: bytes,
});
const exchangeSchema = z.object({
  wallets: z.array(z.string()),
  jwes: z.array(z.looseObject({ recipients: z.array(recipientSchema) })),
});

type Recipient = z.output<typeof recipientSchema>;

function wrappedKey({ header, encrypted_key: encryptedKey }: Recipient) {
  const { alg, kid, epk, apu, apv } = header;
  return {
    alg,
    kid,
    encryptedKey,
    ...(epk !== undefined && { epk: { crv: epk.crv, x: epk.x, y: epk.y ?? new Uint8Array() } }),
    ...(apu !== undefined && { apu }),
    ...(apv !== undefined && { apv }),
  };
}

/** Unwraps the content keys of the JWEs in a file over gRPC, and adds them to it. */
async function unwrapContentKeys(state: LocalState, token: string, file: string): Promise<void> {
  const text = readFileSync(file, 'utf8');
  const { wallets, jwes } = exchangeSchema.parse(JSON.parse(text));
  const address = environmentOf(state, 'register')['CHANCERY_WALLET_GRPC'] ?? '';
  const call = { as: 'service-register', server: 'service-wallet', address };
  const { client, close } = await connectService(state, WalletService, call);
  const unwrap = async (recipients: readonly Recipient[], wallet: string): Promise<string[]> => {
    const keys = recipients.filter(({ header }) => header.kid.startsWith(wallet)).map(wrappedKey);
    const answer = await client.unwrapKeys({ wallet, keys }, { subjectToken: token });
    return answer.keys.map(({ result }) =>
      result.case === 'contentKey' ? Buffer.from(result.value).toString('hex') : '',
    );
  };
  try {
    const contentKeys = await Promise.all(
      jwes.map(async ({ recipients }) => {
        const ofWallets = await Promise.all(wallets.map((wallet) => unwrap(recipients, wallet)));
        return ofWallets.flat();
      }),
    );
    writeFileSync(file, JSON.stringify({ ...JSON.parse(text), contentKeys }), { mode: 0o600 });
  } finally {
    close();
  }
}

/**
 * JWEs that jwcrypto makes and opens, and content keys of JWEs for several recipients, on a local mode of processes, whose
 * settings name the gRPC listener of the wallet service.
 */
export async function joseExchange(): Promise<Counts[]> {
  if (process.platform !== 'linux') {
    process.stdout.write('\njose_wallet.py\nskipped: not Linux\n');
    return [];
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-jose-'));
  const { state, stop } = await startSystem({ dataDir, args: ['--processes'] });
  try {
    const file = join(dataDir, 'jose.json');
    const account = ['--email', state.adminEmail, '--password-file', state.adminPasswordFile];
    const made = await script('jose_wallet.py', ['make', state.gatewayUrl, ...account, '--file', file]);
    if (made.failed > 0) return [made];
    const { access_token: token } = await signIn(createApi(state.gatewayUrl), state);
    await unwrapContentKeys(state, token, file);
    return [made, await script('jose_wallet.py', ['check', '--file', file])];
  } finally {
    await stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
