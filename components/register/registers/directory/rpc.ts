import { walletAddress } from '#core/crypto/address.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { normalisePublicKey, parsePublicKey } from '#core/crypto/public-key.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { endpoint } from '#kit/config/config.ts';
import type { Database } from '#kit/db/db.ts';
import type { RpcHandlers, RpcServer } from '#kit/rpc/rpc.ts';
import { ValidatorDirectoryService } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { allAnnounced, announce } from './store.ts';

interface DirectoryDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  /** Called when a validator announced a new address, or itself for the first time. */
  readonly onAnnounced: (validatorId: string) => void;
}

type Handlers = RpcHandlers<(typeof ValidatorDirectoryService)['method']>;

export function directoryHandlers(deps: DirectoryDeps): Handlers {
  return {
    async announce(request, context) {
      const { validatorId, algorithm, version, features } = request;
      if (validatorId !== context.peer.clientId) {
        throw new AppError('forbidden', 'FORBIDDEN', 'A validator may announce only itself.');
      }
      // Validators have Ed25519 keys only.
      if (!isAlgorithm(algorithm) || algorithm !== 'ED25519') {
        throw new AppError('invalid', 'VAL_SIG_001', 'The key of a validator is ED25519.');
      }
      if (!endpoint.safeParse(request.endpoint).success) {
        throw new AppError('invalid', 'INVALID_REQUEST', 'endpoint is not host:port.');
      }
      if (!/^[\x20-\x7e]{0,64}$/.test(version)) {
        throw new AppError('invalid', 'INVALID_REQUEST', 'version is at most 64 printable characters.');
      }
      if (features.length > 16 || !features.every((name) => /^[a-z0-9][a-z0-9.-]{0,31}$/.test(name))) {
        throw new AppError('invalid', 'INVALID_REQUEST', 'features are at most 16 lower-case names.');
      }
      const publicKey = normalisePublicKey(algorithm, request.publicKey);
      const announcedAt = new Date(deps.clock.nowMs());
      const { endpoint: at } = request;
      const entry = { validatorId, publicKey, algorithm, endpoint: at, version, features, announcedAt };
      if (!(await deps.database.transact((tx) => announce(tx, entry))))
        throw refusal('VALIDATOR_KEY_CHANGED');
      deps.onAnnounced(validatorId);
      return { walletAddress: walletAddress(algorithm, parsePublicKey(algorithm, publicKey)) };
    },
    async listValidators() {
      const announced = await allAnnounced(deps.database.read);
      return {
        validators: announced.map(({ announcedAt, features, ...entry }) => ({
          ...entry,
          features: [...features],
          announcedAtMs: BigInt(announcedAt.getTime()),
        })),
      };
    },
  };
}

export function addDirectoryService(server: RpcServer, deps: DirectoryDeps): void {
  server.add(ValidatorDirectoryService, directoryHandlers(deps), {
    allow: (peer) => peer.clientId.startsWith('validator-'),
  });
}
