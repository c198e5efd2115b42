import { randomBytes } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { AppError } from '#core/errors/errors.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import { RecordService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { connectFileChunks, connectRecords } from '../clients.ts';
import { openFixture, person, type Replica, type ReplicaOptions, routesFor } from './fixture.ts';
import { createHttpClient, type HttpClient } from './http-client.ts';
import { makeFile, type Reader, sealAction } from './sealed-file.ts';

export interface MadeWallet {
  readonly id: string;
  readonly walletAddress: string;
  readonly keyType: string;
  readonly publicKey: string;
  readonly encryptionPublicKey: string | null;
}

type Sealed = Awaited<ReturnType<typeof sealAction>>;
type ActionOptions = Partial<Omit<Parameters<typeof sealAction>[0], 'registerId' | 'groups'>>;

/** Transactions and chunks that the doubles of the register and the blueprint service hold. */
interface Stores {
  readonly sealed: Map<string, Sealed>;
  readonly chunks: Map<string, Buffer>;
  readonly purged: Set<string>;
  /** The blueprint service refuses every call. */
  away: boolean;
}

/** The wallet service over real sockets, before doubles of the services that hold transactions and files. */
export interface DownloadWorld {
  readonly registerId: string;
  readonly stores: Stores;
  readonly replica: Replica & ReplicaOptions;
  readonly client: HttpClient;
  readonly app: ReturnType<typeof routesFor>;
  stop(): Promise<void>;
}

/** Starts the world: the doubles speak the real protocols over mutual TLS. */
export async function startDownloadWorld(name: string): Promise<DownloadWorld> {
  const cleanup = new Cleanup();
  const stores: Stores = { sealed: new Map(), chunks: new Map(), purged: new Set(), away: false };
  const authority = await memoryAuthority(testInstallation);
  const workloadOf = (clientId: string) => fixedWorkload(authority, clientId);
  const serve = async (clientId: string, add: (server: RpcServer) => void) => {
    const at = { workload: await workloadOf(clientId), host: '127.0.0.1', port: 0 };
    const server = createRpcServer({ runtime: testRuntime(clientId), ...at });
    cleanup.add(clientId, () => server.stop());
    add(server);
    return { host: '127.0.0.1', port: await server.listen() };
  };
  const register = await serve('service-register', (server) => addRecords(server, stores));
  const blueprint = await serve('service-blueprint', (server) => addChunks(server, stores));
  const runtime = testRuntime('service-wallet');
  const options = { runtime, workload: await workloadOf('service-wallet'), token: async () => 'token' };
  const records = connectRecords(register, options);
  cleanup.add('records', () => records.close());
  const chunks = connectFileChunks(blueprint, options);
  cleanup.add('chunks', () => chunks.close());
  const replica = await openFixture(name, { records, chunks });
  cleanup.add('replica', () => replica.close());
  const client = createHttpClient(replica);
  cleanup.add('client', () => client.close());
  const app = routesFor(replica, client.callers);
  cleanup.add('app', () => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const registerId = randomBytes(16).toString('hex');
  return { registerId, stores, replica, client, app, stop: () => cleanup.run(runtime.log) };
}

const forWallets = { allow: ({ clientId }: { clientId: string }) => clientId === 'service-wallet' };

function addRecords(server: RpcServer, { sealed }: Stores): void {
  const getSealedTransaction = async ({ transactionId }: { transactionId: string }) => {
    const found = sealed.get(transactionId);
    if (found === undefined) throw new AppError('not_found', 'TX_NOT_FOUND', 'unknown');
    const { record, payload } = found;
    return { transaction: { record, payload, payloadHashForm: 'jcs' } };
  };
  server.add(RecordService, { getSealedTransaction }, forWallets);
}

function addChunks(server: RpcServer, stores: Stores): void {
  const readChunk = async ({ chunkId }: { chunkId: string }) => {
    if (stores.away) throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away');
    if (stores.purged.has(chunkId)) throw new AppError('gone', 'CHUNK_PURGED', 'deleted');
    const encryptedData = stores.chunks.get(chunkId);
    if (encryptedData === undefined) throw new AppError('not_found', 'CHUNK_NOT_FOUND', 'unknown');
    return { encryptedData };
  };
  server.add(FileChunkService, { readChunk }, forWallets);
}

/** A new person with a wallet. */
export function holder({ client }: DownloadWorld, name: string, keyType = 'NISTP256'): Promise<MadeWallet> {
  client.callers.set(name, person());
  return client.made(name, keyType);
}

/** A wallet as a recipient: by its key for payloads, else by its only key. */
export function readerOf(wallet: MadeWallet): Reader {
  const { walletAddress, keyType, publicKey, encryptionPublicKey } = wallet;
  if (encryptionPublicKey === null) return { kid: walletAddress, keyType, publicKey };
  return { kid: `${walletAddress}#platform:payload-encryption`, keyType, publicKey: encryptionPublicKey };
}

/** Seals an action with data for readers; returns its id. */
export async function seal(
  { registerId, stores }: DownloadWorld,
  readers: readonly Reader[],
  data: object,
  change: ActionOptions = {},
): Promise<string> {
  const action = await sealAction({ registerId, groups: [{ readers, data }], ...change });
  stores.sealed.set(action.txId, action);
  return action.txId;
}

/** Stores a file; `ids` are those of its chunks. */
export function upload(
  { registerId, stores }: DownloadWorld,
  parts: readonly Buffer[],
  change: object = {},
  claimed?: string,
) {
  const { reference, chunks } = makeFile(registerId, parts, change, claimed);
  for (const [id, bytes] of chunks) stores.chunks.set(id, bytes);
  return { reference, ids: [...chunks.keys()] };
}

/** The path of a download; the field is `plan` unless the query names another one. */
export function pathOf(
  { registerId }: DownloadWorld,
  address: string,
  query: Record<string, string>,
): string {
  const all = new URLSearchParams({ registerId, fieldName: 'plan', ...query });
  return `/api/v1/wallets/${address}/files/download?${all}`;
}

/** The answer of a download, with its headers, before its body is read. */
export function download(
  world: DownloadWorld,
  who: string,
  address: string,
  query: Record<string, string>,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { port } = world.app.server.address() as AddressInfo;
  const at = { port, host: '127.0.0.1', path: pathOf(world, address, query), agent: false };
  get({ ...at, headers: { authorization: who } }, resolve).on('error', reject);
  return promise;
}

/** Status and code of a refused download. */
export async function refusedWith(
  world: DownloadWorld,
  who: string,
  address: string,
  query: Record<string, string>,
): Promise<[number | undefined, string]> {
  const response = await download(world, who, address, query);
  const { code } = JSON.parse((await buffer(response)).toString());
  return [response.statusCode, String(code)];
}

/** How many downloads failed with a code. */
export async function failuresWith({ replica }: DownloadWorld, code: string): Promise<number> {
  const metrics = await replica.runtime.telemetry.registry.metrics();
  const line = new RegExp(`file_download_failures_total\\{code="${code}"\\} (\\d+)`).exec(metrics);
  return Number(line?.[1] ?? 0);
}
