import { title } from './title.ts';

export const greeting = `hello to ${title.length}`;
