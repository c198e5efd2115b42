import { createService } from '#kit/service/service.ts';
import { assemble, type Parts } from './assemble.ts';
import type { BlueprintConfig } from './config.ts';
import { mountRoutes } from './http.ts';

/** Builds the blueprint service; resolves when it listens and tokens can be verified. */
export const createBlueprint = createService<BlueprintConfig, Parts>({
  service: 'blueprint',
  title: 'Chancery blueprint service',
  bodyLimitBytes: 2 * 1024 * 1024,
  assemble,
  routes: (app, { deps }) => mountRoutes(app, deps),
});
