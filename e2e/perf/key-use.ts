import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { connect } from 'node:http2';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import { WalletService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { connectService, environmentOf } from '../harness/service-caller.ts';
import { inParallel } from '../harness/wait.ts';
import { cpuSeconds } from './process-cpu.ts';
import { startRaw } from './raw/child.ts';
import { wrapAlgorithm, wrapFor } from './raw/key-wrap.ts';
import { signRaw } from './raw/sign-raw.ts';
import type { Row } from './report.ts';
import { inFlight, perCpuSecond } from './services.ts';
import type { Stage } from './stage.ts';

const rounds = 3;
const keysOfBatch = 32;
const batches = 300;
const batchesInFlight = 4;
const digests = 4000;
const contentKeyBytes = 32;

type Wallets = RpcClient<typeof WalletService.method>;

/** Calls the wallet service as the register service does. */
function connectWallets({ system }: Stage): Promise<{ readonly client: Wallets; close(): void }> {
  return connectService(system.state, WalletService, {
    as: 'service-register',
    server: 'service-wallet',
    address: environmentOf(system.state, 'register')['CHANCERY_WALLET_GRPC'] ?? '',
  });
}

/** A batch of keys for the owner's wallet, as UnwrapKeys takes it. */
async function batchFor(client: Wallets, wallet: string) {
  const { keys } = await client.findEncryptionKeys({ addresses: [wallet] });
  const [found] = keys;
  if (found?.algorithm !== 'X25519') throw new Error('the owner has no key of X25519');
  const recipient = Buffer.from(found.publicKey, 'base64').toString('base64url');
  return Array.from({ length: keysOfBatch }, () => {
    const { x, encryptedKey } = wrapFor(recipient, randomBytes(contentKeyBytes));
    const epk = { crv: 'X25519', x: Buffer.from(x, 'base64url'), y: new Uint8Array() };
    return { kid: found.kid, alg: wrapAlgorithm, epk, encryptedKey };
  });
}

function startRawUnwrap() {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const { x: recipient = '' } = publicKey.export({ format: 'jwk' });
  const keys = Array.from({ length: keysOfBatch }, () => {
    const { x, encryptedKey } = wrapFor(recipient, randomBytes(contentKeyBytes));
    return { x, encryptedKey: encryptedKey.toString('base64url') };
  });
  return startRaw(new URL('./raw/unwrap.ts', import.meta.url), {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    keys,
  });
}

/** Content keys of one wallet in batches of 32, per CPU second of the wallet process, beside node:crypto alone. */
export async function unwrapping(stage: Stage): Promise<Row> {
  const { client, close } = await connectWallets(stage);
  const raw = await startRawUnwrap();
  const wallet = stage.owner.walletAddress;
  const keys = await batchFor(client, wallet);
  const pid = stage.pidOf('wallet');
  const unwrap = async (): Promise<void> => {
    const answer = await client.unwrapKeys({ wallet, keys }, { subjectToken: stage.token });
    if (answer.keys.some(({ result }) => result.case !== 'contentKey')) throw new Error('a key was refused');
  };
  const figures = { ours: [] as number[], raw: [] as number[] };
  try {
    for (let n = 0; n <= rounds; n++) {
      const before = cpuSeconds(pid);
      await inParallel(Array.from({ length: batches }), batchesInFlight, unwrap);
      const ours = (batches * keysOfBatch) / (cpuSeconds(pid) - before);
      const beforeRaw = cpuSeconds(raw.pid);
      await raw.tell(String(batches));
      const bare = (batches * keysOfBatch) / (cpuSeconds(raw.pid) - beforeRaw);
      if (n === 0) continue;
      figures.ours.push(ours);
      figures.raw.push(bare);
    }
  } finally {
    close();
    await raw.stop();
  }
  return {
    measure: `content keys unwrapped per CPU second, batches of ${keysOfBatch}`,
    ...figures,
    unit: '/s',
    bound: { kind: 'share', atLeast: 0.6 },
  };
}

/** Digests signed with the key of one wallet, per CPU second of the wallet process, beside bare node:http2. */
export async function signing(stage: Stage): Promise<Row> {
  const { client, close } = await connectWallets(stage);
  const signingKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  const raw = await startRaw(new URL('./raw/digest.ts', import.meta.url), { ...stage.svid, signingKey });
  const session = connect(raw.said, { ...stage.svid, checkServerIdentity: () => undefined });
  const digest = randomBytes(32);
  const request = { walletAddress: stage.owner.walletAddress, digest, derivationContext: '' };
  const sign = async (): Promise<void> => {
    await client.signDigest(request, { subjectToken: stage.token });
  };
  const figures = { ours: [] as number[], raw: [] as number[] };
  try {
    for (let n = 0; n <= rounds; n++) {
      const ours = await perCpuSecond(stage.pidOf('wallet'), digests, sign);
      const bare = await perCpuSecond(raw.pid, digests, () => signRaw(session, digest));
      if (n === 0) continue;
      figures.ours.push(ours);
      figures.raw.push(bare);
    }
  } finally {
    close();
    session.destroy();
    await raw.stop();
  }
  return {
    measure: `digests signed over gRPC per CPU second, ${inFlight} in flight`,
    ...figures,
    unit: '/s',
    bound: { kind: 'share', atLeast: 0.45 },
  };
}
