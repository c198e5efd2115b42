import { closeSuite } from '../programs.ts';
import { judgeMultipaz } from './judge.ts';

/** Runs the part of the independent programs in which Multipaz is the wallet. */

closeSuite('multipaz', await judgeMultipaz());
