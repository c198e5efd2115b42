import type { Migration } from '#kit/db/db.ts';
import { platform } from './0001-platform.ts';
import { definitions } from './0002-definitions.ts';
import { instances } from './0003-instances.ts';
import { operations } from './0004-operations.ts';
import { rehearsals } from './0005-rehearsals.ts';
import { files } from './0006-files.ts';
import { rebuilds } from './0007-rebuilds.ts';
import { restored } from './0008-restored.ts';

export const migrations: readonly Migration[] = [
  platform,
  definitions,
  instances,
  operations,
  rehearsals,
  files,
  rebuilds,
  restored,
];
