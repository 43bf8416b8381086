// Package crawler is an example app: the MCP server of a web crawler whose agents
// are woken when a crawl has finished. It shows a tool that subscribes, a watch, a
// public event, and who a user is, and belongs to no product.
//
// Its events:
//
//   - crawl.finished {job}: an agent that called the tool watch_crawl is woken;
//   - crawl.polled {job}: the same for watch_polled_crawl, once, and found out by
//     polling;
//   - site.updated {site}: public, so that any client of MCP Events may have it.
//
// Each has the payload {pages}, and site.updated may have a summary. Crawls and
// sites are reported over HTTP, by whatever crawls:
//
//	POST /crawls/{job} {"pages":5}
//	POST /sites/{site} {"pages":5,"summary":"new prices"}
//
// There is no crawling here.
package crawler
