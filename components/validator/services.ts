import { availableParallelism } from 'node:os';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import type { RpcClient } from '#kit/rpc/rpc.ts';
import { openSession, type ServiceBase } from '#kit/service/service.ts';
import {
  LedgerService,
  RecordService,
  ValidatorDirectoryService,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { keyName } from './chain/state/state.ts';
import type { ValidatorConfig } from './config.ts';
import { createDirectory } from './network/peers/directory.ts';
import { createLedger } from './network/services/clients.ts';
import { SignerStream } from './network/services/signer-stream.ts';
import { connectTo } from './network/transport/clients.ts';

/** Short, since a person may wait for the result; after an outage the last known entries are used. */
const directoryTimeoutMs = 3_000;

export type Services = Awaited<ReturnType<typeof connectServices>>;

/** The services that a validator calls, with tokens, clients, signing stream and verifiers. */
export async function connectServices(base: ServiceBase<ValidatorConfig>) {
  const { config, runtime, workload, cleanup } = base;
  const { log, clock } = runtime;
  const session = await openSession(base);
  const { token } = session;
  const caller = { runtime, workload, token };
  const walletService = { clientId: 'service-wallet', address: config.CHANCERY_WALLET_GRPC };
  const registerService = { clientId: 'service-register', address: config.CHANCERY_REGISTER_GRPC };
  const wallet = connectTo(SystemSignerService, walletService, caller);
  cleanup.add('wallet client', () => wallet.close());
  const ledger = connectTo(LedgerService, { ...registerService, multiplexed: true }, caller);
  cleanup.add('ledger client', () => ledger.close());
  const records = connectTo(RecordService, registerService, caller);
  cleanup.add('record client', () => records.close());
  const directoryClient = connectTo(ValidatorDirectoryService, registerService, caller);
  cleanup.add('directory client', () => directoryClient.close());
  const directory = createDirectory(async () => {
    const { validators } = await directoryClient.listValidators({}, { timeoutMs: directoryTimeoutMs });
    return validators.map((entry) => ({ ...entry, announcedAtMs: Number(entry.announcedAtMs) }));
  }, clock);
  const pool = createVerifyPool({
    workers: verifyWorkers(config),
  });
  cleanup.add('verify pool', () => pool.close());
  const signer = new SignerStream({
    wallet,
    validatorId: config.CHANCERY_VALIDATOR_ID,
    log,
    onFenced: (error) =>
      log.error(
        { err: error },
        'another holder of this identity has taken over; this process signs nothing more until it is restarted',
      ),
  });
  let systemKey: Promise<string> | undefined;
  return {
    session,
    limiter: createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock }),
    signer,
    directoryClient,
    directory,
    pool,
    ledger: createLedger(ledger, records),
    systemKey: () => {
      systemKey ??= fetchSystemKey(wallet);
      systemKey.catch(() => {
        systemKey = undefined;
      });
      return systemKey;
    },
  };
}

/** Threads that verify signatures. */
export function verifyWorkers(config: ValidatorConfig): number {
  return Math.min(config.CHANCERY_VERIFY_WORKERS, availableParallelism());
}

async function fetchSystemKey(
  wallet: Pick<RpcClient<typeof SystemSignerService.method>, 'getSystemKey'>,
): Promise<string> {
  const { key } = await wallet.getSystemKey({ derivationPath: 'platform:register-control' });
  return key === undefined ? '' : keyName(key.algorithm, key.publicKey);
}
