import { createService } from '#kit/service/service.ts';
import { HolderService } from '#protos/gen/chancery/credential/v1/holder_pb.js';
import { assemble, type Parts } from './assemble.ts';
import type { CredentialConfig } from './config.ts';
import { holderHandlers, mayJudgeForHolders } from './holder/rpc.ts';
import { mountRoutes } from './http.ts';

/** Builds the credential service; resolves when it listens and tokens can be verified. */
export const createCredential = createService<CredentialConfig, Parts>({
  service: 'credential',
  title: 'Chancery credential service',
  assemble,
  rpc: (server, { deps }) =>
    server.add(HolderService, holderHandlers(deps), { allow: mayJudgeForHolders, requireToken: true }),
  routes: (app, { deps }) => mountRoutes(app, deps),
});
