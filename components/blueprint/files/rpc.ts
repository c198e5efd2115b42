import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import type { Database } from '#kit/db/db.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import type { FileTables } from '../database/file-tables.ts';
import { refusal } from '../errors.ts';
import { readChunk } from './uploads/store.ts';

type Methods = (typeof FileChunkService)['method'];

/** Only the wallet service reads chunks: it opens them for those whom the file was disclosed to. */
export function mayReadChunks(peer: RpcPeer): boolean {
  return peer.clientId === 'service-wallet';
}

/** Handlers of encrypted chunks. */
export function chunkHandlers(db: Pick<Database<FileTables>, 'read'>): RpcHandlers<Methods> {
  return {
    readChunk: async ({ registerId, chunkId }) => {
      const place = { registerId: findRegisterId(registerId), chunkId: findTxId(chunkId) };
      if (place.registerId === undefined || place.chunkId === undefined) throw refusal('CHUNK_NOT_FOUND');
      const encryptedData = await readChunk(db.read, {
        registerId: place.registerId,
        chunkId: place.chunkId,
      });
      return { encryptedData };
    },
  };
}
