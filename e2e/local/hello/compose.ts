import { createService } from '#kit/service/service.ts';
import { assemble, type Parts } from './assemble.ts';
import type { HelloConfig } from './config.ts';
import { mountRoutes } from './http.ts';

/** Builds the hello service; resolves when it listens and tokens can be verified. */
export const createHello = createService<HelloConfig, Parts>({
  service: 'hello',
  title: 'Hello',
  assemble,
  routes: (app, { deps }) => mountRoutes(app, deps),
});
