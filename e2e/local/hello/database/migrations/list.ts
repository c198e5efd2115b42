import type { Migration } from '#kit/db/db.ts';
import { greetings } from './0001-greetings.ts';

export const migrations: Migration[] = [greetings];
