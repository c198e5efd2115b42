import type { App } from '#kit/http/http.ts';
import { type Hub, mountHub } from '#kit/hub/hub.ts';
import { mountActionReads } from './actions/read-routes.ts';
import { mountRejectionRoutes } from './actions/reject-routes.ts';
import { type ActionRouteDeps, mountActionRoutes } from './actions/routes.ts';
import { chatHubLimits, chatHubPath } from './definitions/chat/hub.ts';
import { type DefinitionDeps, mountDefinitionRoutes } from './definitions/routes.ts';
import { type HelperDeps, mountHelperRoutes } from './execution/routes.ts';
import { type ChunkRouteDeps, mountChunkRoutes } from './files/chunk-routes.ts';
import { type FileDownloadDeps, mountFileDownload } from './files/download-routes.ts';
import { type DataRouteDeps, mountDataRoutes } from './instances/data-routes.ts';
import { blueprintHubPath } from './instances/hub/hub.ts';
import { mountProjectionRoutes, type ProjectionRouteDeps } from './instances/projection/routes.ts';
import { type InstanceRouteDeps, mountInstanceRoutes } from './instances/routes.ts';
import { mountOperationRoutes, type OperationRouteDeps } from './operations/routes.ts';
import { mountRehearsalRoutes } from './rehearsals/routes.ts';
import type { StepDeps } from './rehearsals/steps.ts';

/** Dependencies of the route handlers; registering the routes uses none of them. */
export type BlueprintHttpDeps = DefinitionDeps &
  HelperDeps &
  InstanceRouteDeps &
  DataRouteDeps &
  ProjectionRouteDeps &
  OperationRouteDeps &
  ActionRouteDeps &
  StepDeps &
  ChunkRouteDeps &
  FileDownloadDeps & { readonly hub: Hub; readonly chatHub: Hub };

export function mountRoutes(app: App, deps: BlueprintHttpDeps): void {
  mountDefinitionRoutes(app, deps);
  mountHelperRoutes(app, deps);
  mountInstanceRoutes(app, deps);
  mountDataRoutes(app, deps);
  mountProjectionRoutes(app, deps);
  mountActionRoutes(app, deps);
  mountRejectionRoutes(app, deps);
  mountActionReads(app, deps);
  mountOperationRoutes(app, deps);
  mountRehearsalRoutes(app, deps);
  mountChunkRoutes(app, deps);
  mountFileDownload(app, deps);
  mountHub(app, blueprintHubPath, () => deps.hub);
  mountHub(app, chatHubPath, () => deps.chatHub, chatHubLimits);
}
