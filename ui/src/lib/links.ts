// The maximum length of a link. The server accepts more, but proxies often limit the whole request line to 8 KiB.

export const LONGEST_LINK = 8000;

export const isLongLink = (link: string): boolean => link.length > LONGEST_LINK;
