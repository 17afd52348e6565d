// How long a link may be. Ours takes more; what stands before a server often takes 8 KiB for the whole line of a request.

export const LONGEST_LINK = 8000;

export const isLongLink = (link: string): boolean => link.length > LONGEST_LINK;
