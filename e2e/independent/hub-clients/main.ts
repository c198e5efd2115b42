import { closeSuite } from '../programs.ts';
import { followThroughReplicas } from './reconnection.ts';

/** Runs the part of the independent programs that follows hubs in Node and in Chromium. */

closeSuite('hub-clients', await followThroughReplicas());
