import { createService } from '#kit/service/service.ts';
import { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import { assemble, type Parts } from './assemble.ts';
import type { BlueprintConfig } from './config.ts';
import { chunkHandlers, mayReadChunks } from './files/rpc.ts';
import { mountRoutes } from './http.ts';

/** Builds the blueprint service; resolves when it listens and tokens can be verified. */
export const createBlueprint = createService<BlueprintConfig, Parts>({
  service: 'blueprint',
  title: 'Chancery blueprint service',
  bodyLimitBytes: 2 * 1024 * 1024,
  assemble,
  rpc: (server, { deps }) =>
    server.add(FileChunkService, chunkHandlers(deps.db), { allow: mayReadChunks, requireToken: true }),
  routes: (app, { deps }) => mountRoutes(app, deps),
});
