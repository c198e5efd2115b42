import { createService } from '#kit/service/service.ts';
import { assemble, type Parts } from './assemble.ts';
import type { CredentialConfig } from './config.ts';
import { mountRoutes } from './http.ts';

/** Builds the credential service; resolves when it listens and tokens can be verified. */
export const createCredential = createService<CredentialConfig, Parts>({
  service: 'credential',
  title: 'Chancery credential service',
  assemble,
  routes: (app, { deps }) => mountRoutes(app, deps),
});
