import type { App } from '#kit/http/http.ts';
import { mountDiagramRoutes } from './diagrams/routes.ts';
import { type DraftRouteDeps, mountDraftRoutes } from './drafts/routes.ts';
import { type JudgingRouteDeps, mountJudgingRoutes } from './judging/routes.ts';
import { mountPublicationRoutes, type PublicationRouteDeps } from './publications/routes.ts';
import { mountPublishingRoutes, type PublishingRouteDeps } from './publishing/routes.ts';

export type DefinitionDeps = DraftRouteDeps & JudgingRouteDeps & PublicationRouteDeps & PublishingRouteDeps;

/** Mounts the definitions of workflows: drafts, their validation, publications. */
export function mountDefinitionRoutes(app: App, deps: DefinitionDeps): void {
  mountDraftRoutes(app, deps);
  mountJudgingRoutes(app, deps);
  mountPublicationRoutes(app, deps);
  mountPublishingRoutes(app, deps);
  mountDiagramRoutes(app, deps);
}
