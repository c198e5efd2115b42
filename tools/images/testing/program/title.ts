export const title: string = 'worker';
